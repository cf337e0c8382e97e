package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"baton/bench/internal/rig"
)

// part is one kind of trial.
type part struct {
	name  string
	trial func(ctx context.Context, l *lab, rounds int, o *outcome) error
	// nodes is the number of nodes in a trial, rounds the number of rounds, and trials the number of trials.
	nodes, rounds, trials int
	// atOnce is the number of trials that share the machine. Trials sleep most of the time, but if milliseconds matter, only a few trials
	// run at the same time.
	atOnce int
	quiet  bool
	// daemon means that the shipped program also takes part.
	daemon bool
}

func parts() []part {
	return []part{
		{name: "handover", trial: handover, nodes: 3, rounds: 20, trials: 1, atOnce: 4},
		{name: "cost", trial: idle, nodes: 1 + standbys, trials: 1, atOnce: 9, quiet: true, daemon: true},
		{name: "failover", trial: failover, nodes: 3, rounds: 5, trials: 2, atOnce: 20},
		{name: "freeze", trial: freeze, nodes: 3, trials: 3, atOnce: 20},
		{name: "recovery", trial: restart, nodes: 3, trials: 6, atOnce: 20},
	}
}

func partNames() []string {
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	return names
}

// partsOf returns the parts that the command line names.
func partsOf(o options) []part {
	var some []part
	for _, p := range parts() {
		if o.quick {
			p.rounds, p.trials = (p.rounds+3)/4, (p.trials+1)/2
		}
		if rig.Named(o.parts, p.name) {
			some = append(some, p)
		}
	}
	return some
}

// result identifies a contender and a lease.
type result struct {
	contender string
	ttl       time.Duration
}

// bench is one run of all parts.
type bench struct {
	options options
	dir     string
	baton   string // the shipped program
	report  *rig.Report

	mu      sync.Mutex
	results map[result]*outcome
}

// run does all trials of a part. It begins with the long leases, so that the last trials are short. Contenders take turns, so that a slow
// phase of the machine affects all of them.
func (b *bench) run(ctx context.Context, p part) error {
	began := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	places := make(chan struct{}, p.atOnce)
	var wg sync.WaitGroup
	for _, ttl := range slices.Backward(b.options.ttls) {
		for range p.trials {
			for _, c := range wanted(b.options.only) {
				if c.daemon && !p.daemon {
					continue
				}
				places <- struct{}{}
				wg.Go(func() {
					defer func() { <-places }()
					if err := b.trial(ctx, p, c, ttl); err != nil {
						cancel(fmt.Errorf("%s, %s, ttl %v: %w", p.name, c.name, ttl, err))
					}
				})
			}
		}
	}
	wg.Wait()
	b.report.Progress("%-8s done after %v", p.name, time.Since(began).Round(time.Second))
	return context.Cause(ctx)
}

func (b *bench) trial(ctx context.Context, p part, c contender, ttl time.Duration) (err error) {
	if ctx.Err() != nil {
		return nil // another trial has failed, and its error is reported
	}
	l, err := newLab(b.dir, c, ttl, p.quiet, b.baton, p.nodes)
	if err != nil {
		return err
	}
	var o outcome
	err = errors.Join(p.trial(ctx, l, p.rounds, &o), l.close())
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	key := result{c.name, ttl}
	if b.results[key] == nil {
		b.results[key] = &outcome{}
	}
	b.results[key].add(o)
	b.report.Progress("%s", o.summary(p.name, c.name, ttl))
	return nil
}
