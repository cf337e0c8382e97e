package redislock

import (
	"context"
	"fmt"
	"time"

	"baton/internal/elector"
	"baton/internal/heartbeat"

	"github.com/gomodule/redigo/redis"
)

// memory is state that a candidate has seen, and that Redis may have lost since then.
type memory struct {
	early   string // "lease" or "quarantine" if one still runs by this node's clock
	leaseMS int64  // the lease of the last known term
}

// pollLease reads the rest of the lease with one plain command. It avoids the costs of a script, because there are many standbys.
// The result 0 means that the caller must run the script, because the lock is free, or the lease is longer than the known holder's
// lease.
func (l *Lock) pollLease(ctx context.Context, c elector.Candidate) (time.Duration, error) {
	left, err := redis.Int64(l.do(ctx, func(conn redis.Conn) (any, error) {
		if l.nodeInfoDue() {
			changed, err := l.writeNodeInfo(ctx, conn, c)
			if err != nil || changed {
				return int64(0), err
			}
		}
		return redis.DoContext(conn, ctx, "PTTL", l.keys.Lock())
	}))
	if err != nil {
		return 0, fmt.Errorf("read the lease of lock %q: %w", l.keys.Lock(), err)
	}
	if left != noExpiry && left <= 0 || l.held.leaseMS > 0 && (left == noExpiry || left > l.held.leaseMS) {
		return 0, nil
	}
	return leaseLeft(left), nil
}

// stillHeld returns the answer for a lease that has not ended since the last answer, so that the holder is still the same. The rest
// of the lease counts from the time of the request. If it counted from a later time, the real end of the lease would seem too early.
func (l *Lock) stillHeld(sent heartbeat.Instant, left time.Duration) elector.Answer {
	l.until = sent.Add(left)
	return elector.Answer{Outcome: elector.Held, Holder: l.held.detail, Epoch: l.held.epoch, Left: left,
		Lease: milliseconds(l.held.leaseMS)}
}

// clockTolerance is the time by which a lease may seem to end too early, because clocks run at different speeds.
const clockTolerance = 50 * time.Millisecond

// remembered returns the candidate's memory. It leaves out the field early if that field is no longer valid.
func (l *Lock) remembered() memory {
	m := l.seen
	if l.until.Sub(heartbeat.Boottime()) <= clockTolerance+milliseconds(m.leaseMS)/100 {
		m.early = ""
	}
	return m
}

// noExpiry is PTTL's reply for a key that does not expire. Such a key is a lock of another program.
const noExpiry = -1

// leaseLeft returns how long a standby may wait before it asks again. The argument pttl is PTTL's reply for the lock key.
func leaseLeft(pttl int64) time.Duration {
	if pttl == noExpiry {
		return time.Hour
	}
	return milliseconds(pttl)
}

// milliseconds and timeOf convert durations and times that Redis stores in ms.
func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
func timeOf(ms int64) time.Time          { return time.UnixMilli(ms).UTC() }
