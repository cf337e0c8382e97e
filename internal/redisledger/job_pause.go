package redisledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"baton/internal/redisconn"

	"github.com/gomodule/redigo/redis"
)

// JobPause is the pause of a job.
type JobPause struct {
	At     time.Time
	Reason string    // "by alice: upgrade"
	Until  time.Time // its end, by Redis' clock; zero: until Resume
	All    bool      // all jobs of the election are paused
}

// allJobs is the prefix of the fields of the pause of all jobs in {K}:control. The pause of the
// election has the same fields without the prefix.
const allJobs = "jobs_"

// pauseFields are the fields of a pause, and of the last one that has ended.
func pauseFields(prefix string) []any {
	return []any{prefix + "paused_reason", prefix + "paused_at", prefix + "paused_until", prefix + "pause_began", prefix + "pause_ended"}
}

// pauses are the pause that holds, nil if none does, and the last that have ended.
type pauses struct {
	now   *JobPause
	ended []Stretch
}

// Pause pauses a job, or with "" all jobs of the election, across terms: no slot is granted
// until Resume, or until a time if it is not zero. It returns the pause that was in force, nil
// without one; a second pause replaces reason and end.
func (l *Ledger) Pause(ctx context.Context, name, reason string, until time.Time) (before *JobPause, err error) {
	ends := any("")
	if !until.IsZero() {
		ends = until.UnixMilli()
	}
	return l.pause(ctx, "pause", name, reason, ends)
}

// Resume ends the pause of a job, or with "" that of all jobs; neither ends the other. It
// returns the pause, nil without one.
func (l *Ledger) Resume(ctx context.Context, name string) (was *JobPause, err error) {
	return l.pause(ctx, "resume", name, "", "")
}

func (l *Ledger) pause(ctx context.Context, doing, name, reason string, ends any) (*JobPause, error) {
	key, prefix, what := l.keys.Job(name), "", fmt.Sprintf("%s job %q", doing, name)
	if name == "" {
		key, prefix, what = l.keys.Control(), allJobs, doing+" all jobs"
	}
	was, err := redis.Strings(l.script(ctx, pauseScript, []any{key, prefix, reason, ends}))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	l.wake(ctx)
	if len(was) < 3 {
		return nil, nil
	}
	return &JobPause{At: millisField(was[0]), Reason: was[1], Until: millisField(was[2]), All: name == ""}, nil
}

// askPauses asks for Redis' time and the pause of all jobs: the first two replies, for pauseOfAll.
func (l *Ledger) askPauses() []redisconn.Command {
	return []redisconn.Command{redisconn.Cmd("TIME"), redisconn.Cmd("HMGET", append([]any{l.keys.Control()}, pauseFields(allJobs)...)...)}
}

func pauseOfAll(replies []any) (now time.Time, all pauses, err error) {
	now, err = redisconn.Time(replies[0])
	if err != nil {
		return now, all, err
	}
	all, err = decodePause(replies[1], allJobs, now)
	return now, all, err
}

// decodePause decodes the values of pauseFields.
func decodePause(reply any, prefix string, now time.Time) (pauses, error) {
	values, err := redis.Values(reply, nil)
	if err != nil {
		return pauses{}, err
	}
	fields := map[string]string{}
	for i, name := range pauseFields(prefix) {
		value, err := redis.String(values[i], nil)
		if err == nil {
			fields[name.(string)] = value
		} else if !errors.Is(err, redis.ErrNil) {
			return pauses{}, err
		}
	}
	return pauseIn(fields, prefix, now), nil
}

// pauseIn finds the pauses among the fields of a hash.
func pauseIn(fields map[string]string, prefix string, now time.Time) (found pauses) {
	last := Stretch{millisField(fields[prefix+"pause_began"]), millisField(fields[prefix+"pause_ended"])}
	if !last.To.IsZero() {
		found.ended = append(found.ended, last)
	}
	reason, paused := fields[prefix+"paused_reason"]
	p := JobPause{At: millisField(fields[prefix+"paused_at"]), Reason: reason, Until: millisField(fields[prefix+"paused_until"]),
		All: prefix == allJobs}
	switch {
	case !paused:
	case !p.Until.IsZero() && !p.Until.After(now): // it is over but not yet removed
		found.ended = append(found.ended, Stretch{p.At, p.Until})
	default:
		found.now = &p
	}
	return found
}

// longer is the pause that ends later; own if they end together.
func longer(own, all *JobPause) *JobPause {
	switch {
	case own == nil:
		return all
	case all == nil || own.Until.IsZero():
		return own
	case all.Until.IsZero() || all.Until.After(own.Until):
		return all
	}
	return own
}
