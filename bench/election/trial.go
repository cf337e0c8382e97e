package main

import (
	"context"
	"syscall"
	"time"

	"baton/internal/heartbeat"
)

// outcome holds the results of the trials of one contender with one ttl.
type outcome struct {
	handovers []time.Duration
	failovers []time.Duration
	freezes   []clash
	recovered []recovery
	overlaps  []time.Duration // of handovers and failovers
	cost      cost
}

// clash holds the acts of a leader that came back too late.
type clash struct {
	overlap time.Duration
	acts    int
	never   bool // the old leader had not stopped when the trial ended
}

// recovery holds the events after Redis came back empty.
type recovery struct {
	after   time.Duration // until one process acts alone
	overlap time.Duration
	never   bool
}

// handover stops leaders in order, one after the other.
func handover(ctx context.Context, l *lab, rounds int, o *outcome) error {
	return succession(ctx, l, rounds, syscall.SIGTERM, pollInterval(l.ttl), o, &o.handovers)
}

// failover kills leaders, one after the other.
func failover(ctx context.Context, l *lab, rounds int, o *outcome) error {
	return succession(ctx, l, rounds, syscall.SIGKILL, l.contender.renew(l.ttl), o, &o.failovers)
}

func succession(ctx context.Context, l *lab, rounds int, sig syscall.Signal, period time.Duration, o *outcome, times *[]time.Duration) error {
	for range rounds {
		leader, err := l.leader(ctx)
		if err != nil {
			return err
		}
		if err := l.someTime(ctx, period); err != nil {
			return err
		}
		took, err := l.end(ctx, leader, sig)
		if err != nil {
			return err
		}
		*times = append(*times, took)
	}
	spells, _ := l.history(ctx)
	o.overlaps = append(o.overlaps, overlap(spells))
	return nil
}

// freeze stops the leader's process for two leases and then continues it.
func freeze(ctx context.Context, l *lab, _ int, o *outcome) error {
	leader, err := l.leader(ctx)
	if err != nil {
		return err
	}
	if err := l.someTime(ctx, l.contender.renew(l.ttl)); err != nil {
		return err
	}
	frozen := heartbeat.Boottime()
	if err := l.nodes[leader].Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	pause(ctx, 2*l.ttl)
	if err := l.await(ctx, "another node acts", func() bool {
		_, ok := firstOther(l.record.sofar(), leader, frozen)
		return ok
	}); err != nil {
		return err
	}
	thawed := heartbeat.Boottime()
	l.record.thaw(leader, thawed)
	if err := l.nodes[leader].Signal(syscall.SIGCONT); err != nil {
		return err
	}
	pause(ctx, l.contender.renew(l.ttl)+time.Second)
	spells, end := l.history(ctx)
	o.freezes = append(o.freezes, clashOf(spells, leader, thawed, end))
	return ctx.Err()
}

// clashOf returns how long the old leader, after the thaw, acted at the same time as another leader.
func clashOf(spells []spell, old string, thawed, end heartbeat.Instant) clash {
	var c clash
	var late []spell
	for _, s := range spells {
		switch {
		case s.to < thawed:
		case s.node == old:
			c.acts += s.acts
			c.never = s.to == end
			// Since the thaw the process has acted as the leader.
			late = append(late, spell{node: old, from: thawed, to: s.to})
		default:
			late = append(late, spell{node: s.node, from: max(s.from, thawed), to: s.to})
		}
	}
	if c.overlap = overlap(late); c.overlap == 0 {
		return clash{} // it leads again, alone
	}
	return c
}

// restart kills Redis, starts it without its data, and waits until the processes have come to rest.
func restart(ctx context.Context, l *lab, _ int, o *outcome) error {
	if _, err := l.leader(ctx); err != nil {
		return err
	}
	if err := l.someTime(ctx, l.contender.renew(l.ttl)); err != nil {
		return err
	}
	if err := l.redis.Restart(); err != nil {
		return err
	}
	up := heartbeat.Boottime()
	pause(ctx, 2*l.ttl+time.Second)
	spells, end := l.history(ctx)
	at, ok := settled(spells, up, end)
	o.recovered = append(o.recovered, recovery{after: at.Sub(up), overlap: overlap(spells), never: !ok})
	return ctx.Err()
}
