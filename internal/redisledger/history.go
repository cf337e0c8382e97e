package redisledger

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/job"
	"baton/internal/redisconn"
)

// StateMissed is the State of a history entry for slots that did not run.
const StateMissed job.State = "missed"

// JobState is the state of a job that the ledger has recorded.
type JobState struct {
	Job                 string
	Begun               time.Time    // the first slot that was claimed; zero: none ever was
	Known               time.Time    // the time when a leader first knew the job, if the job had not run by then; zero: unknown
	LastSlot            time.Time    // zero: no slot was claimed yet
	MissedUntil         time.Time    // zero: no slot is known as missed
	Running             []OpenRun    // in the order of their starts
	Retry               *job.Retrial // the pending retrial; nil without one
	Last                *job.Record  // the last finished run
	LastSuccess         time.Time    // when a run last succeeded; zero: never
	Fresh               time.Time    // everything written before this time has been flushed; zero: never
	ConsecutiveFailures int64        // since LastSuccess
	DeadLetters         *int64       // waiting in the database, as a leader last counted; nil: not counted
	Unaccepted          int64        // the number of rows that wait to be accepted as rows of the job
	Paused              *JobPause    // nil if not paused
	Pauses              []TimeRange  // the last pauses that have ended, of the job and of all jobs
	Refused             Refusal      // the refusal of the last refused manual run
	Cancelled           Cancelled    // the outcome of the last order to cancel runs
	// Operation is the last operation that has begun. Verified is the last verification that came to its end.
	Operation, Verified *OperationState
	// VerifiedUntil ends the slots of scheduled verifications that are ordered. It is zero if no verification was ordered by schedule.
	VerifiedUntil time.Time
}

// RunsUnder reports whether the leader with the given owner has an open run. A run of a dead leader stays open until the next leader
// closes it.
func (s JobState) RunsUnder(owner string) bool {
	return slices.ContainsFunc(s.Running, func(r OpenRun) bool { return r.Term.Owner == owner })
}

// TimeRange is the time between two moments.
type TimeRange struct{ From, To time.Time }

// OpenRun is a run that was claimed and has no recorded end. Its leader may be dead.
type OpenRun struct {
	job.Record
	Progress *Progress // nil: the run has not reported its progress yet
}

// Jobs returns the states of the named jobs, in the order of the argument names. It needs one round trip.
func (l *Ledger) Jobs(ctx context.Context, names []string) ([]JobState, error) {
	if len(names) == 0 {
		return nil, nil
	}
	c, err := l.store.Conn(ctx, l.keys.Lock())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	commands := l.askPauses()
	for _, name := range names {
		// HGETALL also reads unknown fields: the hash is small and has a limited size.
		commands = append(commands, redisconn.Cmd("HGETALL", l.keys.Job(name)))
	}
	if err := redisconn.SendAll(c, commands...); err != nil {
		return nil, fmt.Errorf("read the state of the jobs: %w", redisconn.Explain(err))
	}
	replies, err := redisconn.ReceiveAll(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("read the state of the jobs: %w", redisconn.Explain(err))
	}
	now, all, err := pauseOfAll(replies)
	if err != nil {
		return nil, fmt.Errorf("read the state of the jobs: %w", redisconn.Explain(err))
	}
	states := make([]JobState, len(names))
	for i, name := range names {
		fields, err := redis.StringMap(replies[i+2], nil)
		if err != nil {
			return nil, fmt.Errorf("read the state of job %q in %q: %w", name, l.keys.Job(name), redisconn.Explain(err))
		}
		states[i] = stateOfJob(name, fields)
		own := pauseIn(fields, "", now)
		states[i].Paused, states[i].Pauses = longer(own.now, all.now), slices.Concat(own.ended, all.ended)
	}
	return states, nil
}

// stateOfJob decodes the hash of a job, but not its pause.
func stateOfJob(name string, fields map[string]string) JobState {
	return JobState{
		Job:                 name,
		Begun:               millisField(fields["begun"]),
		Known:               millisField(fields["known"]),
		LastSlot:            millisField(fields["last_slot"]),
		MissedUntil:         millisField(fields["missed_until"]),
		Running:             openRuns(name, fields),
		Retry:               retrialOf(fields["retry"]),
		Last:                recordOf(name, fields, "result_"),
		LastSuccess:         millisField(fields["last_success"]),
		Fresh:               millisField(fields["fresh"]),
		ConsecutiveFailures: intField(fields["consecutive_failures"]),
		DeadLetters:         countField(fields, "dead_letters"),
		Unaccepted:          intField(fields["unaccepted"]),
		Refused:             Refusal{ID: fields["refused_id"], Reason: fields["refused_reason"]},
		Cancelled:           cancelledOf(fields),
		Operation:           operationOf(name, fields["operation"]),
		Verified:            operationOf(name, fields["verified"]),
		VerifiedUntil:       millisField(fields["verify_until"]),
	}
}

// openRuns decodes the open runs of a job. The earliest run comes first.
func openRuns(name string, fields map[string]string) []OpenRun {
	var open []OpenRun
	for field, value := range fields {
		id, ok := strings.CutPrefix(field, "run:")
		if !ok {
			continue
		}
		var run map[string]string
		if json.Unmarshal([]byte(value), &run) != nil {
			run = map[string]string{"id": id, "state": string(job.StateRunning)} // unreadable, but it must be listed
		}
		if rec := recordOf(name, run, ""); rec != nil {
			open = append(open, OpenRun{Record: *rec, Progress: progressOf(fields["progress:"+id])})
		}
	}
	slices.SortFunc(open, func(a, b OpenRun) int {
		return cmp.Or(a.Started.Compare(b.Started), a.Slot.Compare(b.Slot), strings.Compare(a.ID, b.ID))
	})
	for i := range open {
		if p := open[i].Progress; p != nil {
			open[i].Result.Rows, open[i].Result.Dead = p.Rows, p.Dead
		}
	}
	return open
}

// retrialOf decodes a text of the form "SLOT ATTEMPT AT". It returns nil if the text has another form.
func retrialOf(text string) *job.Retrial {
	parts := strings.Fields(text)
	if len(parts) != 3 {
		return nil
	}
	return &job.Retrial{Slot: millisField(parts[0]), Attempt: int(intField(parts[1])), At: millisField(parts[2])}
}

// HistoryEntry is a finished run, or an entry for missed slots. For missed slots the State is [StateMissed], and the entry contains
// only Missed and the term that recorded the missed slots.
type HistoryEntry struct {
	job.Record
	Entry  string    // its id in the history
	At     time.Time // when it was recorded
	Missed *job.Missed
}

// History returns the last n entries of a job, the newest first.
func (l *Ledger) History(ctx context.Context, name string, n int) ([]HistoryEntry, error) {
	entries, _, err := l.historyBefore(ctx, name, "+", n)
	return entries, err
}

// HistoryBefore returns up to n entries of a job, the newest first. All of them are older than the entry with this id. If the id is
// "", HistoryBefore begins at the newest entry.
func (l *Ledger) HistoryBefore(ctx context.Context, name, id string, n int) ([]HistoryEntry, error) {
	at := "+"
	if id != "" {
		at = "(" + id
	}
	var entries []HistoryEntry
	for at != "" && len(entries) < n { // unknown kinds of entries are skipped
		more, next, err := l.historyBefore(ctx, name, at, n-len(entries))
		if err != nil {
			return nil, err
		}
		entries, at = append(entries, more...), next
	}
	return entries, nil
}

// Runs returns the last n finished runs of a job, the newest first.
func (l *Ledger) Runs(ctx context.Context, name string, n int) ([]job.Record, error) {
	runs := make([]job.Record, 0, n)
	for before := "+"; before != "" && len(runs) < n; {
		var entries []HistoryEntry
		var err error
		if entries, before, err = l.historyBefore(ctx, name, before, n); err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.Missed == nil && len(runs) < n {
				runs = append(runs, e.Record)
			}
		}
	}
	return runs, nil
}

// findPage is the maximum number of entries that one request reads. Redis can serve other clients between two requests.
const findPage = 100

// FindRun finds a finished run by its id. It searches the job's history from the newest entry backwards. The argument most is the
// maximum number of searched entries. FindRun returns nil if the run is not among these entries.
func (l *Ledger) FindRun(ctx context.Context, name, id string, most int) (*job.Record, error) {
	for before := "+"; before != "" && most > 0; most -= findPage {
		var entries []HistoryEntry
		var err error
		if entries, before, err = l.historyBefore(ctx, name, before, min(most, findPage)); err != nil {
			return nil, err
		}
		for i := range entries {
			if entries[i].Missed == nil && entries[i].ID == id {
				return &entries[i].Record, nil
			}
		}
	}
	return nil, nil
}

// stored is an entry of the history before it is decoded.
type stored struct {
	id     string
	fields map[string]string
}

// historyBefore returns up to n entries of the history, the newest first. The argument before is the place in the history that they
// come before. The result next is the place for the next page, or "" at the end of the history.
func (l *Ledger) historyBefore(ctx context.Context, name, before string, n int) (entries []HistoryEntry, next string, err error) {
	found, err := l.storedBefore(ctx, name, before, n)
	if err != nil {
		return nil, "", fmt.Errorf("read the runs of job %q: %w", name, err)
	}
	for _, entry := range found {
		next = "(" + entry.id
		if e, ok := historyEntry(name, entry.id, entry.fields); ok {
			entries = append(entries, e)
		}
	}
	if len(found) < n {
		next = ""
	}
	return entries, next, nil
}

// storedBefore reads up to n entries of a job's history. The argument before is the place in the history that they come before. The
// newest entry of idle runs is not in the stream yet, as long as more idle runs may join it. storedBefore reads that entry first,
// and then the stream. So if the entry moves to the stream between the two reads, storedBefore finds it in the stream.
func (l *Ledger) storedBefore(ctx context.Context, name, before string, n int) ([]stored, error) {
	c, err := l.store.Conn(ctx, l.keys.Lock())
	if err != nil {
		return nil, err
	}
	defer c.Close() // it goes back to the pool
	err = redisconn.SendAll(c, redisconn.Cmd("HGET", l.keys.Job(name), "idle"),
		redisconn.Cmd("XREVRANGE", l.keys.Runs(name), before, "-", "COUNT", n))
	if err != nil {
		return nil, redisconn.Explain(err)
	}
	replies, err := redisconn.ReceiveAll(ctx, c)
	if err != nil {
		return nil, redisconn.Explain(err)
	}
	entries, err := redis.Values(replies[1], nil)
	if err != nil {
		return nil, redisconn.Explain(err)
	}
	all := make([]stored, len(entries))
	for i, entry := range entries {
		if all[i].id, all[i].fields, err = redisconn.StreamEntry(entry); err != nil {
			return nil, fmt.Errorf("entry %q: %w", all[i].id, err)
		}
	}
	text, err := redis.String(replies[0], nil)
	if err != nil && !errors.Is(err, redis.ErrNil) {
		return nil, redisconn.Explain(err)
	}
	if idle, ok := idleEntry(text); ok && (before == "+" || older(idle.id, before[1:])) {
		all = withIdle(all, idle)
	}
	return all[:min(n, len(all))], nil
}

// historyEntry decodes an entry of the history. The result ok is false if the kind of the entry is unknown.
func historyEntry(name, id string, fields map[string]string) (e HistoryEntry, ok bool) {
	ms, _, _ := strings.Cut(id, "-")
	e.Entry, e.At = id, millisField(ms)
	if job.State(fields["state"]) != StateMissed {
		rec := recordOf(name, fields, "")
		if rec == nil {
			return e, false
		}
		e.Record = *rec
		if n := int(intField(fields["count"])); n > 0 {
			e.Idle = &job.Idle{Runs: n, First: millisField(fields["first"])}
		}
		return e, true
	}
	e.Record = readRecord(name, fields, "")
	e.Missed = &job.Missed{
		Job: name, Reason: job.Reason(fields["reason"]), Count: int(intField(fields["count"])),
		First: millisField(fields["first"]), Slot: e.Slot,
	}
	return e, true
}
