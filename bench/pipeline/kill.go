package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/bench/internal/rig"
)

// audit compares the table at the end with the produced entries.
type audit struct {
	kills           int
	produced, there int
	distinct, wrong int
}

// lost returns the number of entries without a row.
func (a audit) lost() int { return a.produced - a.distinct }

// twice returns the number of surplus rows.
func (a audit) twice() int { return a.there - a.distinct }

// killed kills a contender repeatedly while entries arrive.
func (l *lab) killed(ctx context.Context, c contender, f flow, s setting, kills, rate int) (got audit, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("kills, %s, %s, %v: %w", f.name, c.name, s, err)
		}
	}()
	if err := l.reset(ctx, bare(), 0); err != nil {
		return got, err
	}
	p, err := c.start(l, f, bare(), s)
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, p.Kill()) }()
	producer, err := l.produce(f, rate)
	if err != nil {
		return got, err
	}
	for range kills {
		again := func() (*rig.Process, error) { return c.start(l, f, bare(), s) }
		if p, err = l.kill(ctx, p, again); err != nil {
			break
		}
		got.kills++
	}
	if err := errors.Join(err, producer.stop()); err != nil {
		return got, err
	}
	got.produced = producer.made
	return got, l.settle(ctx, p, &got)
}

// kill kills a process at a random moment while it writes, and starts it again. It returns the running process.
func (l *lab) kill(ctx context.Context, p *rig.Process, again func() (*rig.Process, error)) (*rig.Process, error) {
	if err := l.writing(ctx, p); err != nil {
		return p, err
	}
	if !wait(ctx, rand.N(time.Second)) {
		return p, ctx.Err()
	}
	if err := p.Kill(); err != nil {
		return p, err
	}
	next, err := again()
	if err != nil {
		return p, err
	}
	return next, nil
}

// writing waits until the table grows.
func (l *lab) writing(ctx context.Context, p *rig.Process) error {
	first := int64(-1)
	for range 3000 {
		var size int64
		if err := l.db.QueryRow(ctx, "SELECT pg_relation_size($1::text::regclass)", bare().table).Scan(&size); err != nil {
			return err
		}
		if first < 0 {
			first = size
		}
		if size > first {
			return nil
		}
		select {
		case <-p.Done():
			return fmt.Errorf("ended by itself: %w", p.Err())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return fmt.Errorf("nothing was written in 30 seconds: %w", errors.Join(p.Kill(), p.Err()))
}

// settle waits until all entries are in the table and the table no longer changes, or until the table has not changed for too long.
func (l *lab) settle(ctx context.Context, p *rig.Process, a *audit) error {
	const complete, stuck = 3 * time.Second, 12 * time.Second
	changed := time.Now()
	for {
		before := *a
		err := l.db.QueryRow(ctx, "SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE visits <> id * 7 + 1) FROM "+bare().table).
			Scan(&a.there, &a.distinct, &a.wrong)
		if err != nil {
			return err
		}
		if *a != before {
			changed = time.Now()
		}
		quiet := time.Since(changed)
		if quiet > stuck || quiet > complete && a.lost() == 0 {
			return nil
		}
		select {
		case <-p.Done():
			return fmt.Errorf("ended by itself: %w", p.Err())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// producer writes entries at a steady rate until it is stopped.
type producer struct {
	made int // read it after stop
	end  chan struct{}
	done chan error
}

func (l *lab) produce(f flow, rate int) (*producer, error) {
	conn, err := l.dial()
	if err != nil {
		return nil, err
	}
	p := &producer{end: make(chan struct{}), done: make(chan error, 1)}
	go func() { p.done <- errors.Join(p.run(conn, f, rate), conn.Close()) }()
	return p, nil
}

func (p *producer) run(conn redis.Conn, f flow, rate int) error {
	began := time.Now()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		due := int(time.Since(began).Seconds()*float64(rate)) - p.made
		if err := rig.Pipelined(conn, due, func(i int) (string, []any) { return f.entry(int64(p.made + i + 1)) }); err != nil {
			return fmt.Errorf("produce: %w", err)
		}
		p.made += max(due, 0)
		select {
		case <-p.end:
			return nil
		case <-tick.C:
		}
	}
}

func (p *producer) stop() error {
	close(p.end)
	return <-p.done
}
