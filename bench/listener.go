package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/gomodule/redigo/redis"
	"github.com/jackc/pgx/v5"
)

// listenerArgument makes this program a listener to keyspace notifications, which is the usual program without baton.
const listenerArgument = "-listener"

// These are the variables with the settings of a listener.
const (
	listenerRedis = "LISTENER_REDIS" // host:port
	listenerDSN   = "LISTENER_DSN"
	listenerScans = "LISTENER_SCANS" // not empty: the listener reads all keys when it starts
)

// listener keeps the table of strings "k:<id>" as up to date as notifications allow. While it writes, it gathers the keys in the
// notifications. Then it reads the values of all these keys at once, and writes the values with one statement.
type listener struct {
	heard, values redis.Conn
	db            *pgx.Conn

	mu      sync.Mutex
	changed map[string]struct{}
	wake    chan struct{}
}

// runListener runs until its connections break.
func runListener(ctx context.Context) (err error) {
	l := &listener{changed: map[string]struct{}{}, wake: make(chan struct{}, 1)}
	if l.heard, err = redis.Dial("tcp", os.Getenv(listenerRedis)); err != nil {
		return err
	}
	if l.values, err = redis.Dial("tcp", os.Getenv(listenerRedis)); err != nil {
		return err
	}
	if l.db, err = pgx.Connect(ctx, os.Getenv(listenerDSN)); err != nil {
		return err
	}
	if _, err := l.values.Do("CONFIG", "SET", "notify-keyspace-events", "EA"); err != nil {
		return err
	}
	subscription := redis.PubSubConn{Conn: l.heard}
	if err := subscription.PSubscribe("__keyevent@0__:*"); err != nil {
		return err
	}
	if _, subscribed := subscription.Receive().(redis.Subscription); !subscribed {
		return errors.New("the subscription was refused")
	}
	ended := make(chan error, 1)
	go func() { ended <- l.hear(subscription) }()
	if os.Getenv(listenerScans) != "" {
		if err := l.readAll(ctx); err != nil {
			return err
		}
	}
	for {
		select {
		case <-l.wake:
			if err := l.flush(ctx, l.take()); err != nil {
				return err
			}
		case err := <-ended:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// hear records the keys that notifications name.
func (l *listener) hear(s redis.PubSubConn) error {
	for {
		switch m := s.Receive().(type) {
		case redis.Message:
			l.note(string(m.Data))
		case error:
			return m
		}
	}
}

func (l *listener) note(key string) {
	if !strings.HasPrefix(key, "k:") {
		return
	}
	l.mu.Lock()
	l.changed[key] = struct{}{}
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *listener) take() map[string]struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := l.changed
	l.changed = map[string]struct{}{}
	return changed
}

// readAll records every key and every row.
func (l *listener) readAll(ctx context.Context) error {
	for cursor := "0"; ; {
		reply, err := redis.Values(l.values.Do("SCAN", cursor, "MATCH", "k:*", "COUNT", 1000))
		if err != nil {
			return err
		}
		var keys []string
		if _, err := redis.Scan(reply, &cursor, &keys); err != nil {
			return err
		}
		for _, key := range keys {
			l.note(key)
		}
		if cursor == "0" {
			break
		}
	}
	rows, err := l.db.Query(ctx, "SELECT id FROM captured")
	if err != nil {
		return err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	for _, id := range ids {
		l.note("k:" + strconv.FormatInt(id, 10))
	}
	return err
}

// flush writes the present values of the keys.
func (l *listener) flush(ctx context.Context, changed map[string]struct{}) error {
	const most = 5000
	var keys []any
	for key := range changed {
		if keys = append(keys, key); len(keys) == most {
			if err := l.write(ctx, keys); err != nil {
				return err
			}
			keys = nil
		}
	}
	return l.write(ctx, keys)
}

func (l *listener) write(ctx context.Context, keys []any) error {
	if len(keys) == 0 {
		return nil
	}
	values, err := redis.Values(l.values.Do("MGET", keys...))
	if err != nil {
		return err
	}
	var ids, vs, gone []int64
	for i, value := range values {
		id, err := strconv.ParseInt(strings.TrimPrefix(keys[i].(string), "k:"), 10, 64)
		if err != nil {
			return err
		}
		if value == nil {
			gone = append(gone, id)
			continue
		}
		v, err := redis.Int64(value, nil)
		if err != nil {
			return fmt.Errorf("key %v: %w", keys[i], err)
		}
		ids, vs = append(ids, id), append(vs, v)
	}
	batch := &pgx.Batch{} // one round trip, one transaction
	const upsert = "INSERT INTO captured SELECT * FROM unnest($1::bigint[], $2::bigint[]) ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v"
	batch.Queue(upsert, ids, vs)
	if len(gone) > 0 {
		batch.Queue("DELETE FROM captured WHERE id = ANY ($1)", gone)
	}
	return l.db.SendBatch(ctx, batch).Close()
}
