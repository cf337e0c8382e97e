package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/bench/internal/rig"
)

// These are the settings of the trials of the capture and of programs that listen to notifications.
const (
	killTimes   = 30
	killRate    = 2000 // changes per second, and one change in ten deletes its key
	killKeys    = 20_000
	heardRate   = 20_000
	heardKeys   = 160_000
	betweenKill = 700 * time.Millisecond
)

// contender is a program that keeps the table up to date: baton, or a listener.
type contender struct {
	name  string
	start func(n int) (*node, error) // starts the nth process of the program
	exact bool                       // no row may be missing or stale
}

// compared measures baton's capture beside programs that listen to keyspace notifications.
func (b *bed) compared(ctx context.Context, o options, r *report, program, dir string) error {
	r.Printf("\n### Beside a program that listens to keyspace notifications\n")
	r.Printf("The listener was written for this comparison, as well as it can be: it subscribes to `__keyevent@0__:*`, gathers what "+
		"changes while it writes, reads the values of all of that with one MGET, and writes them with one INSERT … ON CONFLICT and one "+
		"DELETE. Each program is killed %d times (SIGKILL) and started again at once, while %s changes a second of %s keys come, a tenth "+
		"of them DEL; baton waits for the lease of %v of the process before. The table is compared when the changes are over.\n",
		killTimes, rig.Thousands(killRate), rig.Thousands(killKeys), takeoverTTL)
	r.Printf("| program | changes | rows missing | stale | without a key | from the kill to a row of after it, s (p50, longest) | "+
		"p50, ms | p99, ms | CPU for %d,000 changes a second, %% | Redis', %% |", heardRate/1000)
	r.Printf("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, c := range b.contenders(program, dir) {
		if err := b.compare(ctx, o, r, c); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	r.Printf("")
	return nil
}

func (b *bed) contenders(program, dir string) []contender {
	listens := func(scans string) func(int) (*node, error) {
		return func(int) (*node, error) {
			self, err := os.Executable()
			if err != nil {
				return nil, err
			}
			p, err := rig.Launch([]string{self, listenerArgument},
				listenerRedis+"="+b.redis, listenerDSN+"="+b.database.dsn, listenerScans+"="+scans)
			return &node{p}, err
		}
	}
	lock := fmt.Sprint("compared-", rand.Uint32()) // no history has a place of this lock
	return []contender{
		{name: "baton", exact: true, start: func(n int) (*node, error) {
			return b.standbyOf(program, filepath.Join(dir, fmt.Sprintf("%s-%d", lock, n)), lock, fmt.Sprint("n", n))
		}},
		{name: "listener", start: listens("")},
		{name: "listener that reads all keys when it starts", start: listens("1")},
	}
}

// wrong counts the rows of the table that differ from Redis.
type wrong struct{ missing, stale, extra int }

func (b *bed) compare(ctx context.Context, o options, r *report, c contender) (err error) {
	if _, err := b.conn.Do("FLUSHALL"); err != nil {
		return err
	}
	if err := b.database.exec(ctx, "CREATE TABLE captured (id bigint PRIMARY KEY, v bigint NOT NULL)"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.database.exec(ctx, "DROP TABLE captured")) }()
	n, err := c.start(0)
	if err != nil {
		return err
	}
	defer func() { _ = n.Kill() }() // it may have been killed
	if err := b.caughtUpBy(ctx, n, killTimes); err != nil {
		return err
	}
	cpu, redisCPU, err := b.heardCost(ctx, n)
	if err != nil {
		return err
	}
	took, err := b.heardLatency(ctx, o, n)
	if err != nil {
		return err
	}
	changes, back, err := b.kills(ctx, &n, c)
	if err != nil {
		return err
	}
	found, err := b.wrongRows(ctx)
	if err != nil {
		return err
	}
	r.Printf("| %s | %s | %d | %d | %d | %.1f, %.1f | %.1f | %.1f | %.0f | %.0f |", c.name, rig.Thousands(float64(changes)), found.missing,
		found.stale, found.extra, quantile(back, 50).Seconds(), quantile(back, 100).Seconds(), ms(quantile(took, 50)), ms(quantile(took, 99)),
		cpu, redisCPU)
	if c.exact && found != (wrong{}) {
		r.Want(false, "%s: no row is wrong: %+v", c.name, found)
	}
	return nil
}

// heardCost returns the processor time of the program and of Redis, in percent of a core.
func (b *bed) heardCost(ctx context.Context, n *node) (own, redisOwn float64, err error) {
	const lasts = 8 * time.Second
	before, err := rig.CPU(n.Pid())
	if err != nil {
		return 0, 0, err
	}
	redisBefore, err := rig.CPU(b.redisPid)
	if err != nil {
		return 0, 0, err
	}
	if err := b.plainly(ctx, heardRate, heardKeys, lasts); err != nil {
		return 0, 0, err
	}
	if err := b.caughtUp(ctx, n); err != nil {
		return 0, 0, err
	}
	after, err := rig.CPU(n.Pid())
	if err != nil {
		return 0, 0, err
	}
	redisAfter, err := rig.CPU(b.redisPid)
	percent := func(d time.Duration) float64 { return 100 * d.Seconds() / lasts.Seconds() }
	return percent(after - before), percent(redisAfter - redisBefore), err
}

// heardLatency returns the times from changes to their rows.
func (b *bed) heardLatency(ctx context.Context, o options, n *node) (took []time.Duration, err error) {
	err = b.database.exec(ctx, tellFunction,
		"CREATE TRIGGER made AFTER INSERT ON captured FOR EACH ROW EXECUTE FUNCTION tell()")
	if err != nil {
		return nil, err
	}
	seen, err := listen(ctx, b.database.dsn)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, seen.close(), b.database.exec(ctx, "DROP TRIGGER made ON captured")) }()
	if err := b.caughtUp(ctx, n); err != nil { // so that baton sees that the table has a trigger now
		return nil, err
	}
	ids := rig.InKeyOrder(int(o.trickling.Seconds())*captureRate, int(o.trickling.Seconds())*captureRate)
	for i := range ids {
		ids[i] += 10 * heardKeys // new ones
	}
	wrote := map[int64]time.Time{}
	set := func(c redis.Conn, ids []int64) error {
		_, err := c.Do("SET", fmt.Sprint("k:", ids[0]), ids[0])
		return err
	}
	if err := drip(ctx, b.conn, freshness{data: dataset{change: set}, rate: captureRate}, ids, wrote); err != nil {
		return nil, err
	}
	if err := n.await(ctx, time.Minute, 50*time.Millisecond, func() (bool, error) { return seen.count() >= len(ids), nil }); err != nil {
		return nil, fmt.Errorf("%d of %d rows have come: %w", seen.count(), len(ids), err)
	}
	for id, at := range wrote {
		took = append(took, seen.at(id).Sub(at))
	}
	return took, nil
}

// kills kills the program repeatedly while keys change, and starts it again. n is the program's present process.
func (b *bed) kills(ctx context.Context, n **node, c contender) (changes int, back []time.Duration, err error) {
	writing, stop := context.WithCancel(ctx)
	wrote := make(chan error, 1)
	go func() {
		var err error
		changes, err = b.changeAndDelete(writing)
		wrote <- err
	}()
	for i := range killTimes {
		if err = sleep(ctx, betweenKill+rand.N(betweenKill)); err == nil {
			err = (*n).Kill()
		}
		if err != nil {
			break
		}
		began := time.Now()
		if *n, err = c.start(i + 1); err != nil {
			break
		}
		if err = b.caughtUpBy(ctx, *n, int64(i)); err != nil {
			break
		}
		back = append(back, time.Since(began))
	}
	stop()
	if err := errors.Join(err, <-wrote); err != nil {
		return 0, nil, err
	}
	return changes, back, b.caughtUp(ctx, *n)
}

// caughtUpBy works like caughtUp, with its own connection and its own key.
func (b *bed) caughtUpBy(ctx context.Context, n *node, i int64) error {
	conn, err := dialRedis(b.redis)
	if err != nil {
		return err
	}
	defer conn.Close()
	key := 9_999_000_000 + i
	return n.await(ctx, time.Minute, 10*time.Millisecond, func() (bool, error) {
		if _, err := conn.Do("SET", fmt.Sprint("k:", key), time.Now().UnixNano()); err != nil { // a starting program may not listen yet
			return false, err
		}
		var there int
		err := b.database.db.QueryRowContext(ctx, "SELECT count(*) FROM captured WHERE id = $1", key).Scan(&there)
		return there == 1, err
	})
}

// changeAndDelete changes keys until ctx ends.
func (b *bed) changeAndDelete(ctx context.Context) (n int, err error) {
	const each = 20
	conn, err := dialRedis(b.redis)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	tick := time.NewTicker(each * time.Second / killRate)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return n, nil
		case <-tick.C:
		}
		err := rig.Pipelined(conn, each, func(i int) (string, []any) {
			key := fmt.Sprint("k:", rand.IntN(killKeys))
			if (n+i)%10 == 0 {
				return "DEL", []any{key}
			}
			return "SET", []any{key, n + i}
		})
		if err != nil {
			return n, err
		}
		n += each
	}
}

// wrongRows compares Redis with the table, after a time without changes.
func (b *bed) wrongRows(ctx context.Context) (found wrong, err error) {
	if err := sleep(ctx, 3*time.Second); err != nil {
		return found, err
	}
	table := map[int64]int64{}
	rows, err := b.database.db.QueryContext(ctx, "SELECT id, v FROM captured")
	if err != nil {
		return found, err
	}
	defer rows.Close()
	for rows.Next() {
		var id, v int64
		if err := rows.Scan(&id, &v); err != nil {
			return found, err
		}
		table[id] = v
	}
	if err := rows.Err(); err != nil {
		return found, err
	}
	keys, err := redis.Strings(b.conn.Do("KEYS", "k:*"))
	if err != nil {
		return found, err
	}
	for _, key := range keys {
		var id int64
		if _, err := fmt.Sscanf(key, "k:%d", &id); err != nil {
			return found, err
		}
		is, err := redis.Int64(b.conn.Do("GET", key))
		if err != nil {
			return found, err
		}
		v, there := table[id]
		switch {
		case !there:
			found.missing++
		case v != is:
			found.stale++
		}
		delete(table, id)
	}
	found.extra = len(table)
	return found, nil
}
