package redislock

import (
	"context"
	"fmt"
	"time"

	"baton/internal/elector"
	"baton/internal/heartbeat"

	"github.com/gomodule/redigo/redis"
)

// memory is state that a candidate has seen and Redis may have lost since.
type memory struct {
	early   string // "lease" or "quarantine" if one still runs by this node's clock
	leaseMS int64  // of the last known term
}

// pollLease asks for the rest of the lease by one plain command, because standbys are many.
// 0 means that the caller must run the script: the lock is free, or lasts longer than the known lease.
func (l *Lock) pollLease(ctx context.Context, c elector.Candidate) (time.Duration, error) {
	left, err := redis.Int64(l.do(ctx, func(conn redis.Conn) (any, error) {
		if l.presenceDue() {
			changed, err := l.writePresence(ctx, conn, c)
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

// stillHeld is the answer while the lease that was seen last has not ended: the holder is the
// same. The rest of the lease counts from the sending of the request. With too late an end, the
// real end of the lease would look early.
func (l *Lock) stillHeld(sent heartbeat.Instant, left time.Duration) elector.Answer {
	l.until = sent.Add(left)
	return elector.Answer{Outcome: elector.Held, Holder: l.held.detail, Epoch: l.held.epoch, Left: left,
		Lease: milliseconds(l.held.leaseMS)}
}

// clockTolerance is by how much a lease may seem to end too early: clocks differ in speed.
const clockTolerance = 50 * time.Millisecond

// remembered is the node's memory as of now.
func (l *Lock) remembered() memory {
	m := l.seen
	if l.until.Sub(heartbeat.Boottime()) <= clockTolerance+milliseconds(m.leaseMS)/100 {
		m.early = ""
	}
	return m
}

// noExpiry is PTTL's reply for a key without expiry: another program's lock.
const noExpiry = -1

// leaseLeft is the longest wait of a standby, from PTTL's reply.
func leaseLeft(pttl int64) time.Duration {
	if pttl == noExpiry {
		return time.Hour
	}
	return milliseconds(pttl)
}

// milliseconds and timeOf are durations and times as Redis keeps them.
func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
func timeOf(ms int64) time.Time          { return time.UnixMilli(ms).UTC() }
