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

// allJobs is the prefix of the fields in {K}:control for the pause of all jobs. The pause of the election uses the same fields without
// the prefix.
const allJobs = "jobs_"

// pauseFields returns the names of the fields for a pause, and for the last pause that has ended.
func pauseFields(prefix string) []any {
	return []any{prefix + "paused_reason", prefix + "paused_at", prefix + "paused_until", prefix + "pause_began", prefix + "pause_ended"}
}

// pauses contains the pause that is in force, or nil, and the last pauses that have ended.
type pauses struct {
	now   *JobPause
	ended []TimeRange
}

// Pause pauses the job with this name, or all jobs of the election if the name is "". The pause stays in force when the leader
// changes. No slot is granted until Resume is called or, if the argument until is not zero, until that time. Pause returns the pause
// that was already in force, or nil. A second pause replaces the reason and the end.
func (l *Ledger) Pause(ctx context.Context, name, reason string, until time.Time) (before *JobPause, err error) {
	ends := any("")
	if !until.IsZero() {
		ends = until.UnixMilli()
	}
	return l.pause(ctx, "pause", name, reason, ends)
}

// Resume ends the pause of the job with this name, or the pause of all jobs if the name is "". Each pause needs its own Resume. It returns
// the pause that it ended, or nil.
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

// askPauses returns two commands, which read Redis' time and the pause of all jobs. They must be the first commands of a pipeline,
// because pauseOfAll decodes the first two replies.
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

// decodePause decodes the values of the fields that pauseFields lists.
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

// pauseIn decodes the pauses from the fields of a hash. The names of these fields begin with the prefix.
func pauseIn(fields map[string]string, prefix string, now time.Time) (found pauses) {
	last := TimeRange{millisField(fields[prefix+"pause_began"]), millisField(fields[prefix+"pause_ended"])}
	if !last.To.IsZero() {
		found.ended = append(found.ended, last)
	}
	reason, paused := fields[prefix+"paused_reason"]
	p := JobPause{At: millisField(fields[prefix+"paused_at"]), Reason: reason, Until: millisField(fields[prefix+"paused_until"]),
		All: prefix == allJobs}
	switch {
	case !paused:
	case !p.Until.IsZero() && !p.Until.After(now): // the pause is over, but not yet removed
		found.ended = append(found.ended, TimeRange{p.At, p.Until})
	default:
		found.now = &p
	}
	return found
}

// longer returns the pause that ends later, or the argument own if both pauses end at the same time.
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
