package redislock

import (
	"context"
	"fmt"
	"time"

	"baton/internal/elector"
	"baton/internal/heartbeat"

	"github.com/gomodule/redigo/redis"
)

// memory is what a candidate has seen, and Redis may have lost since.
type memory struct {
	early   string // "lease" or "quarantine": one that cannot be over yet by this node's clock
	leaseMS int64  // of the last term that is known of
}

// look asks by one plain command, instead of a script of many, how much of the
// lease is left: standbys are many. 0 says that it takes more: the lock is free, or
// lasts for longer than a lease of ours can.
func (l *Lock) look(ctx context.Context, c elector.Candidate) (time.Duration, error) {
	left, err := redis.Int64(l.do(ctx, func(conn redis.Conn) (any, error) {
		if l.untold() {
			changed, err := l.tell(ctx, conn, c)
			if err != nil || changed {
				return int64(0), err
			}
		}
		return redis.DoContext(conn, ctx, "PTTL", l.keys.Lock())
	}))
	if err != nil {
		return 0, fmt.Errorf("look at lock %q: %w", l.keys.Lock(), err)
	}
	if left != noExpiry && left <= 0 || l.held.leaseMS > 0 && (left == noExpiry || left > l.held.leaseMS) {
		return 0, nil
	}
	return leaseLeft(left), nil
}

// stillHeld is the answer while the lease that was seen last has not ended: the
// holder is the same. What was left when Redis answered is counted from the sending:
// a lease that seems to last longer than it does seems to have vanished.
func (l *Lock) stillHeld(sent heartbeat.Instant, left time.Duration) elector.Answer {
	l.until = sent.Add(left)
	return elector.Answer{Outcome: elector.Held, Holder: l.held.detail, Epoch: l.held.epoch, Left: left,
		Lease: milliseconds(l.held.leaseMS)}
}

// haste is how much earlier than it should a lease may seem to end: clocks run a
// little differently.
const haste = 50 * time.Millisecond

// remembered is what the node has seen, as of now.
func (l *Lock) remembered() memory {
	m := l.seen
	if l.until.Sub(heartbeat.Boottime()) <= haste+milliseconds(m.leaseMS)/100 {
		m.early = ""
	}
	return m
}

// noExpiry is PTTL's answer for a key without one: another program has taken the
// lock for ever.
const noExpiry = -1

// leaseLeft is how long a standby should wait at most, by PTTL's answer.
func leaseLeft(pttl int64) time.Duration {
	if pttl == noExpiry {
		return time.Hour
	}
	return milliseconds(pttl)
}

// milliseconds and timeOf are durations and times as Redis keeps them.
func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
func timeOf(ms int64) time.Time          { return time.UnixMilli(ms).UTC() }
