package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/job"
)

// maxErrorText bounds what is kept of a run's error, in bytes.
const maxErrorText = 4096

// JobState is what the ledger knows of a job.
type JobState struct {
	Job                 string
	LastSlot            time.Time   // zero: no slot was ever claimed
	Running             *job.Record // claimed and not yet reported as finished; its leader may be dead
	Last                *job.Record // the last finished run
	LastSuccess         time.Time   // when a run last succeeded; zero: never
	Fresh               time.Time   // what was there before has been done with; zero: never
	ConsecutiveFailures int64       // since LastSuccess
	Paused              *Pause      // nil: it is not
	Progress            *Progress   // of Running; nil: it has told none yet
	Refused             Refusal     // of the last manual run that was
}

// Jobs returns the state of each named job, in that order, in one round trip.
func (l *Ledger) Jobs(ctx context.Context, names []string) ([]JobState, error) {
	if len(names) == 0 {
		return nil, nil
	}
	c, err := l.store.Conn(ctx, l.keys.lock())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	for _, name := range names {
		// Everything, whatever a newer version has added: the hash is small and bounded.
		if err := c.Send("HGETALL", l.keys.job(name)); err != nil {
			return nil, fmt.Errorf("read the state of the jobs: %w", explain(err))
		}
	}
	replies, err := receiveAll(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("read the state of the jobs: %w", explain(err))
	}
	states := make([]JobState, len(names))
	for i, name := range names {
		fields, err := redis.StringMap(replies[i], nil)
		if err != nil {
			return nil, fmt.Errorf("read the state of job %q in %q: %w", name, l.keys.job(name), explain(err))
		}
		states[i] = JobState{
			Job:                 name,
			LastSlot:            millisField(fields["last_slot"]),
			Running:             recordOf(name, fields, "running_"),
			Last:                recordOf(name, fields, "result_"),
			LastSuccess:         millisField(fields["last_success"]),
			Fresh:               millisField(fields["fresh"]),
			ConsecutiveFailures: intField(fields["consecutive_failures"]),
			Progress:            progressOf(fields),
			Refused:             Refusal{ID: fields["refused_id"], Reason: fields["refused_reason"]},
		}
		if reason, paused := fields["paused_reason"]; paused {
			states[i].Paused = &Pause{At: millisField(fields["paused_at"]), Reason: reason}
		}
	}
	return states, nil
}

// Runs returns the last n finished runs of a job, the newest first.
func (l *Ledger) Runs(ctx context.Context, name string, n int) ([]job.Record, error) {
	entries, err := redis.Values(l.store.run(ctx, l.keys.lock(), func(c redis.Conn) (any, error) {
		return redis.DoContext(c, ctx, "XREVRANGE", l.keys.runs(name), "+", "-", "COUNT", n)
	}))
	if err != nil {
		return nil, fmt.Errorf("read the runs of job %q: %w", name, err)
	}
	runs := make([]job.Record, 0, len(entries))
	for _, entry := range entries {
		var id string
		var pairs []any
		parts, err := redis.Values(entry, nil)
		if err == nil {
			_, err = redis.Scan(parts, &id, &pairs)
		}
		if err != nil {
			return nil, fmt.Errorf("read the runs of job %q: %w", name, err)
		}
		fields, err := redis.StringMap(pairs, nil)
		if err != nil {
			return nil, fmt.Errorf("read run %s of job %q: %w", id, name, err)
		}
		if rec := recordOf(name, fields, ""); rec != nil {
			runs = append(runs, *rec)
		}
	}
	return runs, nil
}

// startFields are the stored fields of a run that are known when it starts. The id
// is the first: job_finish.lua looks for it there.
func startFields(rec job.Record) []any {
	return []any{
		"id", rec.ID, "state", string(rec.State), "slot", rec.Slot.UnixMilli(),
		"trigger", string(rec.Trigger), "attempt", rec.Attempt,
		"node", rec.Term.NodeID, "owner", rec.Term.Owner, "epoch", rec.Term.Epoch,
		"started", rec.Started.UnixMilli(),
	}
}

// endFields are those that are known when it has ended.
func endFields(rec job.Record) []any {
	return []any{"finished", rec.Finished.UnixMilli(), "rows", rec.Result.Rows, "dead", rec.Result.Dead, "error", clipError(rec.Error)}
}

func clipError(text string) string {
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	return text
}

// recordOf reads back what startFields and endFields wrote; nil if there is no run.
func recordOf(name string, fields map[string]string, prefix string) *job.Record {
	field := func(f string) string { return fields[prefix+f] }
	if field("id") == "" {
		return nil
	}
	return &job.Record{
		Run: job.Run{
			ID: field("id"), Job: name, Slot: millisField(field("slot")),
			Trigger: job.Trigger(field("trigger")), Attempt: int(intField(field("attempt"))),
			Term: job.Term{NodeID: field("node"), Owner: field("owner"), Epoch: intField(field("epoch"))},
		},
		State:    job.State(field("state")),
		Started:  millisField(field("started")),
		Finished: millisField(field("finished")),
		Result:   job.Result{Rows: intField(field("rows")), Dead: intField(field("dead"))},
		Error:    field("error"),
	}
}

// intField reads a number; one that is missing or unreadable is 0, because a page
// with a gap serves an operator better than none.
func intField(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func millisField(s string) time.Time {
	if s == "" {
		return time.Time{}
	}
	return fromMillis(intField(s))
}

func fromMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
