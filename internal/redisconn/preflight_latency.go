package redisconn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/finding"
)

const (
	// trips is the number of round trips that are measured. This number makes the median steady, and the slowest round trip shows
	// whether the server stalls at times.
	trips      = 40
	tripsApart = 5 * time.Millisecond
	// measureWithin is the time limit of the measurement.
	measureWithin = 4 * time.Second
)

// latency has the durations of all round trips, the shortest first.
type latency []time.Duration

func (l latency) median() time.Duration { return l[len(l)/2] }
func (l latency) worst() time.Duration  { return l[len(l)-1] }

func (l latency) String() string {
	return fmt.Sprintf("a round trip takes %v (median of %d), %v at most", brief(l.median()), len(l), brief(l.worst()))
}

// brief rounds a duration to two or three digits.
func brief(d time.Duration) time.Duration {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(10 * time.Microsecond)
}

// measure repeatedly sends the request that a standby sends. An error reply counts as an answer.
func (x *examination) measure(ctx context.Context, c redis.Conn) (latency, error) {
	var all latency
	key := x.options.LockKey
	if key == "" {
		key = "baton"
	}
	for began := time.Now(); len(all) < trips && time.Since(began) < measureWithin && ctx.Err() == nil; {
		sent := time.Now()
		if _, err := redis.DoContext(c, ctx, "PTTL", key); err != nil {
			if refusal := redis.Error(""); !errors.As(err, &refusal) {
				return nil, err
			}
		}
		all = append(all, time.Since(sent))
		time.Sleep(tripsApart)
	}
	if len(all) == 0 {
		return nil, ctx.Err()
	}
	slices.Sort(all)
	return all, nil
}

// speed compares the durations of the round trips with the time limit of a renewal.
func (x *examination) speed(ctx context.Context, c redis.Conn) string {
	l, err := x.measure(ctx, c)
	if err != nil {
		x.away(err)
		return ""
	}
	limit := x.options.AttemptTimeout
	const raise = "raise election.attempt_timeout, and election.ttl so that 2 × heartbeat_interval + attempt_timeout + drain + margin " +
		"stays below election.ttl; or bring Redis nearer to the nodes"
	switch {
	case x.options.LockKey == "" || limit == 0:
	case l.median() >= limit:
		x.add(finding.TooSlow, fmt.Sprintf("it is too slow for election.attempt_timeout, %v: %v", limit, l),
			"most renewals count as lost, and leaders keep losing the lock", raise)
	case l.worst() >= limit/2:
		x.add(finding.SlowAnswers, fmt.Sprintf("its answers take up to more than half of election.attempt_timeout, %v: %v", limit, l),
			"a renewal that takes longer than this limit counts as lost and is tried again; after several lost renewals in a "+
				"row, the leader "+
				"ends its jobs, and its lease expires",
			"find out why Redis is slow (SLOWLOG GET, LATENCY DOCTOR, forks for snapshots, swapping); or "+raise)
	}
	return l.String()
}
