package demo

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gomodule/redigo/redis"
)

// naiveEvery is the pause between two rounds of the naive program.
const naiveEvery = 100 * time.Millisecond

// naiveTable is the name of the table with the naive program's counts.
const naiveTable = "naive_articles"

// NaiveConfig is the configuration of the naive program. It is passed in a file, because a URL or a DSN may contain a password.
type NaiveConfig struct {
	Name, Redis, Lock string
	Keys              []string
	Driver, DSN       string
}

// RunNaive runs the program that baton replaces, which works like many sync jobs. It takes a lock by SET NX EX, renews the lock in a
// heartbeat beside the work, reads counts, writes them, and deletes them. The demo compares it with baton under the same faults.
func RunNaive(ctx context.Context, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var c NaiveConfig
	if err := json.Unmarshal(text, &c); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	db, err := openNaive(c.Driver, c.DSN)
	if err != nil {
		return err
	}
	defer db.Close()
	for ctx.Err() == nil {
		if err := c.compete(ctx, db); err != nil {
			fmt.Fprintf(os.Stderr, "%v: trying again\n", err) // such programs continue after an error
		}
		pause(ctx, naiveEvery)
	}
	return nil
}

func openNaive(driver, dsn string) (*sql.DB, error) {
	switch driver {
	case "postgres":
		return sql.Open("pgx", dsn)
	case "mysql":
		return sql.Open("mysql", dsn)
	}
	d, err := openSQLite(dsn)
	if err != nil {
		return nil, err
	}
	return d.DB, nil
}

// compete tries to get the lock, and then leads until the lock is lost.
func (c NaiveConfig) compete(ctx context.Context, db *sql.DB) error {
	conn, err := redis.DialURLContext(ctx, c.Redis, redis.DialConnectTimeout(time.Second), redis.DialReadTimeout(redisTimeout))
	if err != nil {
		return err
	}
	defer conn.Close()
	token := c.Name + ":" + rand.Text()
	seconds := int(ttl.Seconds())
	_, err = redis.String(redis.DoContext(conn, ctx, "SET", c.Lock, token, "NX", "EX", seconds))
	if errors.Is(err, redis.ErrNil) {
		return nil
	}
	if err != nil {
		return err
	}
	beat, stop := context.WithCancel(ctx)
	defer stop()
	go c.heartbeat(beat, seconds)
	for ctx.Err() == nil {
		if err := c.flush(ctx, conn, db); err != nil {
			return err
		}
		pause(ctx, naiveEvery)
		if held, err := redis.String(redis.DoContext(conn, ctx, "GET", c.Lock)); err != nil || held != token {
			return err
		}
	}
	_, err = redis.DoContext(conn, context.WithoutCancel(ctx), "DEL", c.Lock)
	return err
}

// heartbeat renews the lock, even if another process has it.
func (c NaiveConfig) heartbeat(ctx context.Context, seconds int) {
	conn, err := redis.DialURLContext(ctx, c.Redis, redis.DialConnectTimeout(time.Second), redis.DialReadTimeout(redisTimeout))
	if err != nil {
		return
	}
	defer conn.Close()
	for err == nil && pause(ctx, ttl/3) {
		_, err = redis.DoContext(conn, ctx, "EXPIRE", c.Lock, seconds)
	}
}

// flush reads counts from Redis, writes them to the table, and deletes them in Redis.
func (c NaiveConfig) flush(ctx context.Context, conn redis.Conn, db *sql.DB) error {
	upsert := "INSERT INTO " + naiveTable + " (id, views) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET views = " +
		naiveTable + ".views + excluded.views"
	if c.Driver == "mysql" {
		upsert = "INSERT INTO " + naiveTable + " (id, views) VALUES (?, ?) ON DUPLICATE KEY UPDATE views = views + VALUES(views)"
	}
	for _, key := range c.Keys {
		counts, err := redis.Int64Map(redis.DoContext(conn, ctx, "HGETALL", key))
		if err != nil {
			return err
		}
		if len(counts) == 0 {
			continue
		}
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		for _, id := range union(counts, map[string]int64(nil)) {
			if _, err := tx.ExecContext(ctx, upsert, id, counts[id]); err != nil {
				return errors.Join(err, tx.Rollback())
			}
		}
		if err := tx.Commit(); err != nil {
			return err
		}
		if _, err := redis.DoContext(conn, ctx, "DEL", key); err != nil { // this also deletes increments that were made since HGETALL
			return err
		}
	}
	return nil
}
