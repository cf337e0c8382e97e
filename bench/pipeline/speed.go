package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/bench/internal/rig"
)

// speed is the result of one turn.
type speed struct {
	rows    int
	seconds float64
	cpu     float64 // seconds of the program
	peakMB  float64
}

func (s speed) perSecond() float64  { return float64(s.rows) / s.seconds }
func (s speed) perMillion() float64 { return s.cpu / float64(s.rows) * 1e6 }

// warm is the number of rows that a program writes before the measurement.
const warm = 5000

// turn makes a contender write a backlog of n rows into a table with the given number of rows.
func (l *lab) turn(ctx context.Context, c contender, f flow, s setting, n, table int) (got speed, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s, %s, %v: %w", f.name, c.name, s, err)
		}
	}()
	if f.empty {
		table = 0
	}
	if err := l.reset(ctx, f.target, table); err != nil {
		return got, err
	}
	ids := rig.AsTheyArrive(n+warm, max(table, n+warm))
	if f.once {
		return l.pass(ctx, c, f, s, ids[:n])
	}
	p, err := c.start(l, f, f.target, s)
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, p.Kill()) }()
	if err := f.lay(l.conn, ids[n:]); err != nil {
		return got, err
	}
	if _, err := l.arrived(ctx, p, f.target, ids[n:], time.Minute); err != nil {
		return got, fmt.Errorf("warm up: %w", err)
	}
	if !wait(ctx, time.Second) { // for acknowledgements
		return got, ctx.Err()
	}
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return got, err
	}
	if err := f.lay(l.conn, ids[:n]); err != nil {
		return got, err
	}
	return l.clock(ctx, p, f, ids[:n], func() error { return p.Signal(syscall.SIGCONT) })
}

// pass makes a contender read all keys once. A contender whose input ends with the last key is started for the pass. baton is already
// running, and begins within a second. The clock of every contender starts with the first SCAN.
func (l *lab) pass(ctx context.Context, c contender, f flow, s setting, ids []int64) (got speed, err error) {
	running := c.name == nameBaton
	if !running {
		if err := f.lay(l.conn, ids); err != nil {
			return got, err
		}
	}
	scans, err := l.scans()
	if err != nil {
		return got, err
	}
	p, err := c.start(l, f, f.target, s)
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, p.Kill()) }()
	if running {
		if err := l.scanning(ctx, p, scans); err != nil {
			return got, err
		}
		if err := p.Signal(syscall.SIGSTOP); err != nil {
			return got, err
		}
		if err := f.lay(l.conn, ids); err != nil {
			return got, err
		}
		if scans, err = l.scans(); err != nil {
			return got, err
		}
		if err := p.Signal(syscall.SIGCONT); err != nil {
			return got, err
		}
	}
	if err := l.scanning(ctx, p, scans); err != nil {
		return got, err
	}
	return l.clock(ctx, p, f, ids, func() error { return nil })
}

// scanning waits until Redis has served one more SCAN.
func (l *lab) scanning(ctx context.Context, p *rig.Process, before int) error {
	for range 3000 {
		n, err := l.scans()
		if err != nil || n > before {
			return err
		}
		select {
		case <-p.Done():
			return fmt.Errorf("ended without a scan: %w", p.Err())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
	return fmt.Errorf("no scan in 15 seconds: %w", errors.Join(p.Kill(), p.Err()))
}

// scans returns the number of SCAN commands that Redis has served.
func (l *lab) scans() (int, error) {
	info, err := redis.String(l.conn.Do("INFO", "commandstats"))
	if err != nil {
		return 0, err
	}
	_, after, found := strings.Cut(info, "cmdstat_scan:calls=")
	if !found {
		return 0, nil
	}
	calls, _, _ := strings.Cut(after, ",")
	return strconv.Atoi(calls)
}

// clock measures the time from begin until all rows are in the table.
func (l *lab) clock(ctx context.Context, p *rig.Process, f flow, ids []int64, begin func() error) (got speed, err error) {
	cpu, err := rig.CPU(p.Pid())
	if err != nil {
		return got, err
	}
	began := time.Now()
	if err := begin(); err != nil {
		return got, err
	}
	meter := watch(p.Pid())
	at, err := l.arrived(ctx, p, f.target, ids, 10*time.Minute)
	used, peak := meter()
	if err != nil {
		return got, err
	}
	return speed{rows: len(ids), seconds: at.Sub(began).Seconds(), cpu: (used - cpu).Seconds(), peakMB: peak}, nil
}

// watch reads the figures of a process at intervals. The process may end at any time. The returned function returns the last figures.
func watch(pid int) func() (cpu time.Duration, peakMB float64) {
	var cpu time.Duration
	var peak float64
	look := func() {
		if c, err := rig.CPU(pid); err == nil {
			cpu = c
		}
		if mb, err := rig.PeakMB(pid); err == nil {
			peak = mb
		}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				look()
				return
			case <-time.After(20 * time.Millisecond):
				look()
			}
		}
	}()
	return func() (time.Duration, float64) { close(stop); <-stopped; return cpu, peak }
}
