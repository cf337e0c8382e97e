package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/bench/internal/rig"
	"baton/internal/flush"
	"baton/internal/redisconn"
)

// These are the parts that measure a real process.
const (
	memoryPart  = "memory"
	standbyPart = "standby"
)

// These are the requirements of the real process.
const (
	mostMB        = 150.0
	mostBlocked   = 10 * time.Millisecond
	stallWatch    = 10 * time.Second
	mostStandbyMB = 25.0
	mostCommands  = 1.0 // commands per second of an idle standby
)

// measureDaemon measures real `baton run` processes.
func measureDaemon(ctx context.Context, o options, r *report) error {
	if !o.wants(memoryPart, true) && !o.wants(standbyPart, true) {
		return nil
	}
	return withBaton(ctx, o, func(b *bed, program, dir string) error {
		if o.wants(memoryPart, true) {
			r.Printf("\n### Memory of `baton run`, and how long it blocks Redis\n")
			r.Progress("memory: looking for %v how long this machine stops a core while the others are busy", stallWatch)
			stalled, err := stall(stallWatch)
			if err != nil {
				return err
			}
			r.Printf("While the other cores were busy a loop on a core of its own stood still for up to %.1f ms.\n", stalled.Seconds()*1000)
			for _, data := range []dataset{users(), articles()} {
				if err := b.memory(ctx, o, r, data, stalled, program, dir); err != nil {
					return err
				}
			}
		}
		if o.wants(standbyPart, true) {
			r.Printf("\n### An idle standby\n")
			return b.standby(ctx, r, program, dir)
		}
		return nil
	})
}

// config returns a node's configuration. The caller appends the job.
func (b *bed) config(lockKey string) string {
	return fmt.Sprintf(`node: {id: bench}
redis: {url: "redis://%s/0"}
election: {lock_key: %s}
http: {listen: "127.0.0.1:0"}
databases:
  main: {driver: %s, dsn: "%s"}
`, b.redis, lockKey, b.database.engine.driver, b.database.dsn)
}

// flushJob returns the configuration of a job for the dataset.
func flushJob(data dataset, schedule string) string {
	return fmt.Sprintf("jobs:\n  - name: bench\n    schedule: %q\n    flush:%s", schedule, data.job)
}

// memory makes a real node flush a backlog several times. Redis' slow log measures wall-clock time. So the thread of Redis that serves
// commands has a core that nothing else of the benchmark uses, see alone, and every attempt counts. stalled is how long the machine
// itself stops a core.
func (b *bed) memory(ctx context.Context, o options, r *report, data dataset, stalled time.Duration, program, dir string) error {
	const attempts = 3
	back, err := b.alone()
	if err != nil {
		return err
	}
	defer back()
	r.Progress("memory: preparing a backlog of %d %s", o.backlog, data.table)
	if err := errors.Join(b.database.exec(ctx, data.create(b.database.engine)), b.load(data, rig.InKeyOrder(o.backlog, o.backlog))); err != nil {
		return err
	}
	var peak float64
	var longest slowCommand
	var took time.Duration
	for range attempts {
		got, err := b.backlog(ctx, o.backlog, data, program, dir)
		if err != nil {
			return err
		}
		r.Progress("memory: %d %s flushed within %.0f MB in %.1f s; longest command %v", o.backlog, data.table, got.PeakMB, got.Seconds, got.Longest)
		took = time.Duration(got.Seconds * float64(time.Second))
		peak = max(peak, got.PeakMB)
		if got.Longest.Took > longest.Took {
			longest = got.Longest
		}
	}
	r.Want(peak <= mostMB, "%d changed %s flushed within %.0f MB resident (required: %.0f MB), in %.1f s",
		o.backlog, data.table, peak, mostMB, took.Seconds())
	if longest.Took > mostBlocked && longest.Took <= mostBlocked+stalled { // a stall could explain it
		r.Printf("- **UNKNOWN** longest command in Redis: %s (required: %s)", longest, mostBlocked)
	} else {
		r.Want(longest.Took <= mostBlocked, "longest command in Redis: %s (required: %s)", longest, mostBlocked)
	}
	b.loaded = ""
	_, err = b.conn.Do("FLUSHALL")
	return errors.Join(err, b.database.exec(ctx, "DROP TABLE "+data.table))
}

// backlog makes one attempt.
func (b *bed) backlog(ctx context.Context, rows int, data dataset, program, dir string) (got result, err error) {
	log := &slowlog{b.conn}
	err = errors.Join(b.database.seed(ctx, data, rows), data.change(b.conn, rig.AsTheyArrive(rows, rows)), log.reset())
	if err != nil {
		return got, err
	}
	n, err := startNode(program, dir, b.config("memory-"+data.table)+flushJob(data, "@every 1s"))
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, n.Stop()) }()
	began := time.Now()
	if err := n.await(ctx, time.Minute+time.Duration(rows)*100*time.Microsecond, 50*time.Millisecond, b.flushed(ctx, data)); err != nil {
		return got, err
	}
	got.Seconds = time.Since(began).Seconds()
	if err := b.database.check(ctx, data, rows); err != nil {
		return got, err
	}
	if got.PeakMB, err = rig.PeakMB(n.Pid()); err != nil {
		return got, err
	}
	got.Longest, err = log.longest(clientName)
	return got, err
}

// flushed returns a function that reports whether Redis has no pending changes, including the changes in the stage.
func (b *bed) flushed(ctx context.Context, data dataset) func() (bool, error) {
	return func() (bool, error) {
		store, err := redisconn.Open(redisconn.Options{URL: "redis://" + b.redis + "/0", ClientName: clientName})
		if err != nil {
			return false, err
		}
		defer store.Close()
		source, err := data.sourceOf("bench", 1)
		if err != nil {
			return false, err
		}
		sources, err := source.Open(store, nil)
		if err != nil {
			return false, err
		}
		left, err := flush.Backlog(ctx, sources)
		return left == 0, err
	}
}

// standby measures a node that waits for a lock that another client holds.
func (b *bed) standby(ctx context.Context, r *report, program, dir string) (err error) {
	const lock, settle, watch = "standby", 5 * time.Second, 20 * time.Second
	if _, err := b.conn.Do("SET", lock, "somebody-else", "PX", (10 * time.Minute).Milliseconds()); err != nil {
		return err
	}
	n, err := startNode(program, dir, b.config(lock)+flushJob(users(), "@every 1s"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Stop()) }()
	if err := sleep(ctx, settle); err != nil {
		return err
	}
	before, err := countCommands(b.conn)
	if err != nil {
		return err
	}
	if err := sleep(ctx, watch); err != nil {
		return err
	}
	after, err := countCommands(b.conn)
	if err != nil {
		return err
	}
	resident, err := rig.ResidentMB(n.Pid())
	if err != nil {
		return err
	}
	each := float64(after-before-1) / watch.Seconds() // one of the commands was ours
	r.Want(resident <= mostStandbyMB, "%.0f MB resident (required: %.0f MB)", resident, mostStandbyMB)
	r.Want(each <= mostCommands, "%.1f Redis commands a second (required: %.0f)", each, mostCommands)
	return nil
}

// countCommands returns the number of commands that Redis has served, including the commands of scripts.
func countCommands(c redis.Conn) (int64, error) {
	info, err := redis.String(c.Do("INFO", "stats"))
	if err != nil {
		return 0, err
	}
	return infoNumber(info, "total_commands_processed")
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
