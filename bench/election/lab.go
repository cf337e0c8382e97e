package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"syscall"
	"time"

	"baton/bench/internal/rig"
	"baton/internal/heartbeat"
	"baton/internal/testsupport"
)

// lockKey is the same for all trials, because every trial has its own Redis.
const lockKey = "leader"

// lab is one trial: a Redis, and processes that contend in it.
type lab struct {
	contender contender
	ttl       time.Duration
	quiet     bool
	baton     string // the shipped program, for the daemon
	redis     *testsupport.RedisDaemon
	nodes     map[string]*rig.Process
	made      int
	record    *record
}

// newLab starts a Redis and n processes.
func newLab(dir string, c contender, ttl time.Duration, quiet bool, baton string, n int) (l *lab, err error) {
	l = &lab{contender: c, ttl: ttl, quiet: quiet, baton: baton, nodes: map[string]*rig.Process{}, record: newRecord()}
	if l.redis, err = testsupport.RunRedis(dir); err != nil {
		return nil, err
	}
	for range n {
		if err := l.add(); err != nil {
			return nil, errors.Join(err, l.close())
		}
	}
	return l, nil
}

// add starts one more node.
func (l *lab) add() error {
	l.made++
	node := fmt.Sprintf("n%d", l.made)
	argv := []string{l.baton, "run", "--redis", l.redis.URL(), "--lock-key", lockKey, "--ttl", l.ttl.String(),
		"--node-id", node, "--http", "127.0.0.1:0", "--log-level", "error"}
	if !l.contender.daemon {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		argv = []string{self, "-child", l.contender.name, "-redis", l.redis.Addr(), "-node", node, "-ttls", l.ttl.String()}
		if l.quiet {
			argv = append(argv, "-quiet")
		}
	}
	p, err := rig.LaunchHeard(argv, func(in io.Reader) error {
		return listen(in, func(word string, at heartbeat.Instant) { l.record.note(node, word, at) })
	})
	if err == nil {
		l.nodes[node] = p
	}
	return err
}

// close ends everything.
func (l *lab) close() error {
	var problems []error
	for _, p := range l.nodes {
		problems = append(problems, p.Kill())
	}
	return errors.Join(append(problems, l.redis.Stop())...)
}

// take removes a node from the lab, so that the lab no longer waits for the node.
func (l *lab) take(node string) *rig.Process {
	p := l.nodes[node]
	delete(l.nodes, node)
	return p
}

// leader waits until one node alone acts.
func (l *lab) leader(ctx context.Context) (string, error) {
	var node string
	err := l.await(ctx, "one node alone acts", func() bool {
		acting := l.record.acting()
		if len(acting) == 1 {
			node = acting[0]
		}
		return len(acting) == 1
	})
	return node, err
}

// await calls ready repeatedly until ready returns true. The time of the event comes from the witnesses, not from this loop.
func (l *lab) await(ctx context.Context, what string, ready func() bool) error {
	limit := 3*l.ttl + 10*time.Second
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !ready() {
		for node, p := range l.nodes {
			select {
			case <-p.Done():
				return fmt.Errorf("%s ended: %w", node, p.Err())
			default:
			}
		}
		if ctx.Err() != nil {
			return fmt.Errorf("waited %v until %s: %w", limit, what, ctx.Err())
		}
		pause(ctx, 10*time.Millisecond)
	}
	return nil
}

// someTime waits until the processes have come to rest, and then until a random moment of their period.
func (l *lab) someTime(ctx context.Context, period time.Duration) error {
	pause(ctx, 300*time.Millisecond+rand.N(period))
	return ctx.Err()
}

// end sends a signal that ends the leader, waits until another node acts, and replaces the old node by a new one. It returns the time
// without a leader, by the witnesses.
func (l *lab) end(ctx context.Context, leader string, sig syscall.Signal) (time.Duration, error) {
	p := l.take(leader)
	sent := heartbeat.Boottime()
	if err := p.Signal(sig); err != nil {
		return 0, err
	}
	var began heartbeat.Instant
	err := l.await(ctx, "another node acts", func() (ok bool) {
		began, ok = firstOther(l.record.sofar(), leader, sent)
		return ok
	})
	if sig == syscall.SIGKILL {
		err = errors.Join(err, p.Kill())
	} else {
		err = errors.Join(err, p.Wait())
	}
	l.record.ended(leader)
	if err != nil {
		return 0, err
	}
	return began.Sub(sent), l.add()
}

// hearingTime is the maximum time that the report of a process takes on a busy machine.
const hearingTime = 500 * time.Millisecond

// history returns the spells until now.
func (l *lab) history(ctx context.Context) (spells []spell, now heartbeat.Instant) {
	now = heartbeat.Boottime()
	pause(ctx, hearingTime)
	return l.record.until(now), now
}
