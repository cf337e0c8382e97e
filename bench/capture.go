package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/bench/internal/rig"
)

// capturePart is the name of the part that measures a node that follows a Redis.
const capturePart = "capture"

// These are the requirements of the part.
const (
	followRate    = 400_000 // commands per second
	followKeys    = 95_000
	followBehind  = 10 * time.Second
	captureP50    = 3 * time.Millisecond
	captureP99    = 15 * time.Millisecond
	captureRate   = 1000
	readOnceRate  = 20_000
	mostCPUEach   = 15.0 // in percent of a core, if every command changes another key
	mostCPUTens   = 5.0  // in percent of a core, if each key changes ten times per second
	standstillMB  = 150.0
	standstill    = 50_000 // commands per second
	takeoverTTL   = 2 * time.Second
	mostTakeover  = takeoverTTL + 2*time.Second
	takeoverTimes = 5
)

// captureJob is the configuration of a job with a capture. The job gets a new name each time, because the place of an old job would be in
// a history that was flushed away.
const captureJob = `jobs:
  - name: %s
    schedule: "@always"
    flush:
      from: {type: capture, key: "k:<id>", value: string}
      to: {database: main, table: captured, key: [id]}
      columns: {id: id, v: $value}
`

// writeScript changes a number of keys: the i-th of all commands sets the key i × 7919, modulo the number of keys, to i. So Redis writes
// as fast as it can, and the writer costs almost nothing.
var writeScript = redis.NewScript(0, `for i = ARGV[1], ARGV[1] + ARGV[2] - 1 do redis.call('SET', 'k:' .. i * 7919 % ARGV[3], i) end`)

// captureTarget is the part of the file of figures for this part.
const captureTarget = "make bench, capture"

// measureCapture measures real nodes that follow a Redis.
func measureCapture(ctx context.Context, o options, out io.Writer) (verdict, err error) {
	if !o.wants(capturePart, true) {
		return nil, nil
	}
	r := &report{rig.NewReport(out)}
	r.Printf("%s; load average at the start %.1f.", rig.Machine(), rig.Load())
	err = withBaton(ctx, o, func(b *bed, program, dir string) error {
		for _, part := range []struct {
			name    string
			measure func(context.Context, options, *report, string, string) error
		}{{"follow", b.follow}, {"latency", b.freshCapture}, {"cost", b.readOnce}, {"standstill", b.standStill}, {"takeover", b.takeOver}, {"listener", b.compared}} {
			if !strings.Contains(part.name, o.cells) {
				continue
			}
			syscall.Sync() // a disk that is still busy with the last part delays every COMMIT
			if err := part.measure(ctx, o, r, program, dir); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || o.write == "" {
		return r.Verdict(), err
	}
	return r.Verdict(), r.WriteInto(o.write, captureTarget)
}

// captured runs a node over an empty Redis and an empty table until do returns.
func (b *bed) captured(ctx context.Context, program, dir, lock string, do func(n *node) error) (err error) {
	b.loaded = ""
	if _, err := b.conn.Do("FLUSHALL"); err != nil {
		return err
	}
	if err := b.database.exec(ctx, "CREATE TABLE captured (id bigint PRIMARY KEY, v bigint NOT NULL)"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.database.exec(ctx, "DROP TABLE captured")) }()
	n, err := startNode(program, dir, b.config(lock)+fmt.Sprintf(captureJob, lock))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Stop()) }()
	if err := b.caughtUp(ctx, n); err != nil {
		return err
	}
	return do(n)
}

// caughtUp makes a change and waits until the change is in the table.
func (b *bed) caughtUp(ctx context.Context, n *node) error {
	now := time.Now().UnixNano()
	if _, err := b.conn.Do("SET", "k:9999999999", now); err != nil {
		return err
	}
	err := n.await(ctx, 3*time.Minute, 20*time.Millisecond, func() (bool, error) {
		var there int
		err := b.database.db.QueryRowContext(ctx, "SELECT count(*) FROM captured WHERE id = 9999999999 AND v = $1", now).Scan(&there)
		return there == 1, err
	})
	if err != nil {
		return fmt.Errorf("a change does not come to the table: %w; the log:\n%s", err, n.Log())
	}
	return nil
}

// write sends commands at the given rate per second for the time d, in scripts of 1,000 commands. It returns how many commands it sent.
func (b *bed) write(ctx context.Context, rate, keys int, d time.Duration) (n int, took time.Duration, err error) {
	const each = 1000
	tick := time.NewTicker(each * time.Second / time.Duration(rate))
	defer tick.Stop()
	began := time.Now()
	for time.Since(began) < d {
		if behind := int(time.Since(began).Seconds()*float64(rate)) - n; behind < each {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return n, 0, ctx.Err()
			}
		}
		if _, err := writeScript.Do(b.conn, n, each, keys); err != nil {
			return n, 0, err
		}
		n += each
	}
	return n, time.Since(began), nil
}

// equals waits until the table equals Redis, after n commands that changed the given number of keys.
func (b *bed) equals(ctx context.Context, node *node, n, keys int, limit time.Duration) (time.Duration, error) {
	first := max(0, n-keys)
	began := time.Now()
	err := node.await(ctx, limit, 50*time.Millisecond, func() (bool, error) {
		var right int
		err := b.database.db.QueryRowContext(ctx, fmt.Sprintf(
			"SELECT count(*) FROM captured WHERE v >= %d AND v < %d AND id = v * 7919 %% %d", first, n, keys)).Scan(&right)
		return right == n-first, err
	})
	return time.Since(began), err
}

// follow measures a node that follows writes at Redis' full speed.
func (b *bed) follow(ctx context.Context, _ options, r *report, program, dir string) error {
	const lasts = 8 * time.Second
	r.Printf("\n### Up to %s changes a second of %s keys\n", rig.Thousands(followRate), rig.Thousands(followKeys))
	return b.captured(ctx, program, dir, "follow", func(n *node) error {
		before, err := rig.CPU(n.Pid())
		if err != nil {
			return err
		}
		sent, took, err := b.write(ctx, followRate, followKeys, lasts)
		if err != nil {
			return err
		}
		behind, err := b.equals(ctx, n, sent, followKeys, 3*time.Minute)
		if err != nil {
			return fmt.Errorf("the table does not equal Redis: %w; the log:\n%s", err, n.Log())
		}
		after, err := rig.CPU(n.Pid())
		if err != nil {
			return err
		}
		cpu := (after - before).Seconds()
		r.Want(float64(sent)/cpu >= followRate, "one core follows %s commands a second (required: %s): %.1f million in %.1f s, "+
			"as fast as Redis made them here, took baton %.1f s of CPU, reading and writing the values included",
			rig.Thousands(float64(sent)/cpu), rig.Thousands(followRate), float64(sent)/1e6, took.Seconds(), cpu)
		r.Want(behind <= followBehind, "the table equals Redis %.1f s after the last one (required: %.0f s)",
			behind.Seconds(), followBehind.Seconds())
		return nil
	})
}

// freshCapture measures the time from a change to its row.
func (b *bed) freshCapture(ctx context.Context, o options, r *report, program, dir string) error {
	f := freshness{capturedUsers(), "@always", captureP50, captureP99, captureRate}
	took, err := b.latency(ctx, o, f, program, dir)
	if err != nil {
		return err
	}
	p50, p99 := quantile(took, 50), quantile(took, 99)
	r.Printf("\n### From the write in Redis to its row, %d changes a second\n", captureRate)
	r.Want(p50 <= f.p50, "p50: %.1f ms (required: %.0f ms)", ms(p50), ms(f.p50))
	r.Want(p99 <= f.p99, "p99: %.1f ms (required: %.0f ms)", ms(p99), ms(f.p99))
	r.Printf("- longest: %.1f ms; load %.1f", ms(quantile(took, 100)), rig.Load())
	return nil
}

// readOnce measures the load on the process of Redis when a node follows Redis and reads its values.
func (b *bed) readOnce(ctx context.Context, _ options, r *report, program, dir string) error {
	const lasts = 8 * time.Second
	r.Printf("\n### What it costs Redis, at %s changes a second\n", rig.Thousands(readOnceRate))
	for _, c := range []struct {
		name string
		keys int
		most float64
	}{{"every key is another one", readOnceRate * 8, mostCPUEach}, {"ten changes of each key a second", readOnceRate / 10, mostCPUTens}} {
		cost := func() (float64, error) {
			before, err := cpuTimes(b.redisPid)
			if err != nil {
				return 0, err
			}
			if err := b.plainly(ctx, readOnceRate, c.keys, lasts); err != nil {
				return 0, err
			}
			after, err := cpuTimes(b.redisPid)
			return float64(after.self-before.self) / lasts.Seconds(), err // ticks of 10 ms: percent
		}
		alone, err := cost()
		if err != nil {
			return err
		}
		var with float64
		if err := b.captured(ctx, program, dir, fmt.Sprint("cost-", c.keys), func(n *node) (err error) {
			if with, err = cost(); err != nil {
				return err
			}
			return b.caughtUp(ctx, n)
		}); err != nil {
			return err
		}
		r.Want(with-alone <= c.most, "%s: %.1f %% of a core more than the %.1f %% that Redis takes alone (required: %.0f %%)",
			c.name, with-alone, alone, c.most)
	}
	return nil
}

// plainly writes as usual programs do, twenty commands at a time.
func (b *bed) plainly(ctx context.Context, rate, keys int, d time.Duration) error {
	const each = 20
	tick := time.NewTicker(each * time.Second / time.Duration(rate))
	defer tick.Stop()
	n := 0
	for began := time.Now(); time.Since(began) < d; {
		if behind := int(time.Since(began).Seconds()*float64(rate)) - n; behind < each {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		err := rig.Pipelined(b.conn, each, func(i int) (string, []any) { return "SET", []any{fmt.Sprint("k:", (n+i)%keys), n + i} })
		if err != nil {
			return err
		}
		n += each
	}
	return nil
}

// standStill measures the memory while the table is locked.
func (b *bed) standStill(ctx context.Context, o options, r *report, program, dir string) error {
	const keys = 1_000_000
	r.Printf("\n### Memory while the database stands still, at %s changes a second\n", rig.Thousands(standstill))
	return b.captured(ctx, program, dir, "standstill", func(n *node) error {
		tx, err := b.database.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // nothing was changed
		if _, err := tx.ExecContext(ctx, "LOCK TABLE captured IN ACCESS EXCLUSIVE MODE"); err != nil {
			return err
		}
		sent, took, err := b.write(ctx, standstill, keys, o.standstill)
		if err != nil {
			return err
		}
		peak, err := rig.PeakMB(n.Pid())
		if err != nil {
			return err
		}
		if err := tx.Rollback(); err != nil {
			return err
		}
		behind, err := b.equals(ctx, n, sent, keys, 3*time.Minute)
		if err != nil {
			return fmt.Errorf("the table does not equal Redis: %w; the log:\n%s", err, n.Log())
		}
		last, err := rig.PeakMB(n.Pid())
		if err != nil {
			return err
		}
		r.Want(max(peak, last) <= standstillMB, "%.0f MB resident after %.0f s in which %s changes of %s keys came, %.0f MB at most "+
			"until the table equals Redis, %.1f s after the lock has gone (required: %.0f MB)",
			peak, took.Seconds(), rig.Thousands(float64(sent)), rig.Thousands(keys), last, behind.Seconds(), standstillMB)
		return nil
	})
}

// takeOver kills the leader repeatedly.
func (b *bed) takeOver(ctx context.Context, _ options, r *report, program, dir string) error {
	r.Printf("\n### After SIGKILL of the leader, with a lease of %v\n", takeoverTTL)
	return b.captured(ctx, program, dir, "first", func(first *node) error {
		if err := first.Stop(); err != nil {
			return err
		}
		var nodes []*node
		defer func() {
			for _, n := range nodes {
				_ = n.Kill() // it may have been killed
			}
		}()
		var all []time.Duration
		continued := 0
		for i := range takeoverTimes + 1 {
			n, err := b.standbyOf(program, filepath.Join(dir, fmt.Sprint("node", i)), "takeover", fmt.Sprint("n", i))
			if err != nil {
				return err
			}
			nodes = append(nodes, n)
			if i == 0 {
				if err := b.caughtUp(ctx, n); err != nil {
					return err
				}
				continue
			}
			if err := sleep(ctx, time.Second); err != nil { // until the standby waits for the lock
				return err
			}
			if err := nodes[i-1].Kill(); err != nil {
				return err
			}
			began := time.Now()
			if err := b.caughtUp(ctx, n); err != nil {
				return err
			}
			all = append(all, time.Since(began))
			if strings.Contains(n.Log(), "went on where it was left (+CONTINUE)") {
				continued++
			}
		}
		r.Want(quantile(all, 100) <= mostTakeover, "%.1f s from the kill to the row of a change of that moment at most, "+
			"%.1f s in the middle, of %d (required: %.0f s)", quantile(all, 100).Seconds(),
			quantile(all, 50).Seconds(), takeoverTimes, mostTakeover.Seconds())
		r.Want(continued == takeoverTimes, "%d of %d successors went on where the leader was (`+CONTINUE`) "+
			"and read no more than what had changed (required: all)", continued, takeoverTimes)
		return nil
	})
}

// standbyOf starts a further node of one election.
func (b *bed) standbyOf(program, dir, lock, id string) (*node, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	config := strings.ReplaceAll(b.config(lock), "{id: bench}", "{id: "+id+"}")
	config = strings.ReplaceAll(config, "lock_key: "+lock, fmt.Sprintf("lock_key: %s, ttl: %v", lock, takeoverTTL))
	return startNode(program, dir, config+fmt.Sprintf(captureJob, lock))
}
