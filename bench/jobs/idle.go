package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/bench/internal/rig"
	"baton/internal/testsupport"
)

// These are the limits for the commands that flushes with nothing to do send to Redis.
const (
	idleFlushes = 100
	idleSent    = 3.0    // commands for each job and run, including all other commands of the node
	idleInner   = 15.0   // commands that scripts call, for each job and run
	idleAlways  = 2000.0 // commands per second of as many jobs with @always, including the commands that scripts call
	idleFor     = 20 * time.Second
)

// idleFlush is the cost of flushes with nothing to do.
type idleFlush struct {
	rates    rig.Rates
	own      float64 // processor time of the node, in ms per second
	redis    float64 // processor time of Redis, in ms per second
	resident float64
}

// flushes returns a configuration with counters jobs that flush into SQLite.
func flushes(dir, redisURL, schedule string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "node: {id: n1}\nredis: {url: %q}\nhttp: {listen: \"127.0.0.1:%d\"}\n", redisURL, httpPort)
	fmt.Fprintf(&b, "databases:\n  main: {driver: sqlite, dsn: %q}\njobs:\n", filepath.Join(dir, "flushes.db"))
	for i := range idleFlushes {
		fmt.Fprintf(&b, "- name: %s\n  schedule: %q\n  flush:\n    from: {type: counters, key: \"views%d\"}\n", name(i), schedule, i)
		b.WriteString("    to: {database: main, table: views, key: [id], schema: create}\n")
		b.WriteString("    columns: {id: {from: $field, type: integer}, views: {from: $value, op: add, type: integer}}\n")
	}
	return b.String()
}

// measureIdle runs a node whose flushes have nothing to do.
func measureIdle(ctx context.Context, o options, schedule, dir string) (got idleFlush, err error) {
	dir, err = os.MkdirTemp(dir, "idle-")
	if err != nil {
		return got, err
	}
	server, err := testsupport.RunRedis(dir, testsupport.RedisAOF())
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	n, err := startWith(o.program, dir, flushes(dir, server.URL(), schedule))
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, n.Stop()) }()
	if err := n.awaitLeading(ctx); err != nil {
		return got, err
	}
	c, err := server.Dial()
	if err != nil {
		return got, err
	}
	defer c.Close()
	if err := settled(ctx, c); err != nil {
		return got, err
	}
	before, err := n.cpu(server.Pid())
	if err != nil {
		return got, err
	}
	if got.rates, err = rig.CommandsOf(ctx, server.Dial, idleFor); err != nil {
		return got, err
	}
	after, err := n.cpu(server.Pid())
	if err != nil {
		return got, err
	}
	got.own = (after.own - before.own).Seconds() * 1000 / idleFor.Seconds()
	got.redis = (after.redis - before.redis).Seconds() * 1000 / idleFor.Seconds()
	got.resident, err = rig.ResidentMB(n.Pid())
	return got, err
}

// settled waits until every job has had a run, because the first run of a job in a term does all steps.
func settled(ctx context.Context, c redis.Conn) error {
	for until := time.Now().Add(2 * time.Minute); time.Now().Before(until); {
		began := 0
		for i := range idleFlushes {
			at, err := redis.Int(c.Do("HEXISTS", fmt.Sprintf("{baton}:job:%s", name(i)), "begun"))
			if err != nil {
				return err
			}
			began += at
		}
		if err := pause(ctx, 3*time.Second); err != nil || began == idleFlushes {
			return err
		}
	}
	return errors.New("not every flush has run within two minutes")
}

// idleTable prints the cost of flushes with nothing to do, and the requirements.
func idleTable(r *rig.Report, slots, always idleFlush) {
	r.Printf("\n| %d flushes of counters with nothing to do, one a job | sent, 1/s | inner, 1/s | node, ms/s | Redis, ms/s | resident |", idleFlushes)
	r.Printf("|---|--:|--:|--:|--:|--:|")
	for _, row := range []struct {
		schedule string
		of       idleFlush
	}{{"@every 1s", slots}, {"@always", always}} {
		r.Printf("| `%s` | %.0f | %.0f | %.0f | %.0f | %.1f MB |", row.schedule, row.of.rates.Sent, row.of.rates.Inner, row.of.own, row.of.redis, row.of.resident)
	}
	r.Printf("")
	sent, inner := slots.rates.Sent/idleFlushes, slots.rates.Inner/idleFlushes
	r.Want(sent <= idleSent, "Redis commands sent for each job and run that has nothing to do: %.2f (required: %.0f)", sent, idleSent)
	r.Want(inner <= idleInner, "inner ones: %.2f (required: %.0f)", inner, idleInner)
	all := always.rates.Sent + always.rates.Inner
	r.Want(all <= idleAlways, "Redis commands a second of %d idle jobs with @always, inner ones included: %.0f (required: %.0f)", idleFlushes, all, idleAlways)
	r.Want(slots.rates.Sent >= idleFlushes && always.rates.Sent >= idleFlushes, "the jobs were looked at: %.0f and %.0f commands a second", slots.rates.Sent, always.rates.Sent)
}
