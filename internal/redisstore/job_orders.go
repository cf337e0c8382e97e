package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/elector"
	"baton/internal/job"
)

var (
	pauseScript    = loadScript("job_pause", 1)
	requestScript  = loadScript("job_request", 2)
	answerScript   = loadScript("job_answer", 2)
	progressScript = loadScript("job_progress", 1)
)

// ErrAsked is the answer to a request for a manual run where another waits already.
var ErrAsked = errors.New("it has been asked for already")

// Refusal is why a manual run did not come about.
type Refusal struct {
	ID     string // that it was asked for by
	Reason string
}

// Request is that a manual run of a job is asked for.
type Request struct {
	Job string
	ID  string // the run's
	By  string // "by alice: reason"
}

// Pause pauses a job until Resume, whoever leads: no slot of it is granted any more.
// It returns the pause that there was before, nil if there was none; paused again it
// goes on under the new reason.
func (l *Ledger) Pause(ctx context.Context, name, reason string) (before *Pause, err error) {
	return l.pause(ctx, "pause", name, reason)
}

// Resume ends the pause of a job. It returns the pause, nil if there was none.
func (l *Ledger) Resume(ctx context.Context, name string) (was *Pause, err error) {
	return l.pause(ctx, "resume", name, "")
}

func (l *Ledger) pause(ctx context.Context, doing, name, reason string) (*Pause, error) {
	was, err := redis.Strings(l.script(ctx, pauseScript, []any{l.keys.job(name), reason}))
	if err != nil {
		return nil, fmt.Errorf("%s job %q: %w", doing, name, err)
	}
	l.wake(ctx)
	if len(was) < 2 {
		return nil, nil
	}
	return &Pause{At: millisField(was[0]), Reason: was[1]}, nil
}

// Request asks the leader for a manual run, which it may claim for so long. It is
// refused with [job.ErrPaused] or [ErrAsked]. Asked again under the same ID it is one
// request.
func (l *Ledger) Request(ctx context.Context, r Request, goodFor time.Duration) error {
	reply, err := redis.Strings(l.script(ctx, requestScript,
		[]any{l.keys.job(r.Job), l.keys.control(), l.keys.request(r.Job), r.ID, goodFor.Milliseconds(), r.By}))
	switch {
	case err != nil:
		return fmt.Errorf("ask for a run of job %q: %w", r.Job, err)
	case reply[0] == "paused":
		return fmt.Errorf("%w %s", job.ErrPaused, reply[1])
	case reply[0] == "asked":
		return fmt.Errorf("%w, %s", ErrAsked, reply[1])
	}
	l.wake(ctx)
	return nil
}

// Withdraw takes a request back. It reports false if it is too late: it was answered.
func (l *Ledger) Withdraw(ctx context.Context, r Request) (bool, error) {
	return l.answer(ctx, r, "")
}

// Refuse answers a request that cannot be met. It reports false if it is not there.
func (l *Ledger) Refuse(ctx context.Context, r Request, reason string) (bool, error) {
	return l.answer(ctx, r, reason)
}

func (l *Ledger) answer(ctx context.Context, r Request, reason string) (bool, error) {
	ended, err := redis.Bool(l.script(ctx, answerScript, []any{l.keys.job(r.Job), l.keys.control(), l.keys.request(r.Job), r.ID, reason}))
	if err != nil {
		return false, fmt.Errorf("answer request %s for a run of job %q: %w", r.ID, r.Job, err)
	}
	return ended, nil
}

// Orders are what operators ask of the leader's jobs.
type Orders struct {
	Requests []Request
	// Paused says of each job that was asked about why it is paused; "" if it is not.
	Paused map[string]string
}

// Orders reads all requests, and the pauses of some jobs, in one round trip.
func (l *Ledger) Orders(ctx context.Context, jobs []string) (o Orders, err error) {
	c, err := l.store.Conn(ctx, l.keys.lock())
	if err != nil {
		return o, err
	}
	defer c.Close()
	commands := []command{{"HGETALL", []any{l.keys.control()}}}
	for _, name := range jobs {
		commands = append(commands, command{"HGET", []any{l.keys.job(name), "paused_reason"}})
	}
	if err := sendAll(c, commands...); err != nil {
		return o, fmt.Errorf("read what is asked of the jobs: %w", explain(err))
	}
	replies, err := receiveAll(ctx, c)
	if err != nil {
		return o, fmt.Errorf("read what is asked of the jobs: %w", explain(err))
	}
	fields, err := redis.StringMap(replies[0], nil)
	if err != nil {
		return o, fmt.Errorf("read what is asked of the jobs in %q: %w", l.keys.control(), explain(err))
	}
	for field, value := range fields {
		if name, ok := strings.CutPrefix(field, l.keys.request("")); ok {
			id, rest, _ := strings.Cut(value, " ")
			_, by, _ := strings.Cut(rest, " ")
			o.Requests = append(o.Requests, Request{Job: name, ID: id, By: by})
		}
	}
	o.Paused = make(map[string]string, len(jobs))
	for i, name := range jobs {
		reason, err := redis.String(replies[i+1], nil)
		if err != nil && !errors.Is(err, redis.ErrNil) {
			return o, fmt.Errorf("read whether job %q is paused: %w", name, explain(err))
		}
		o.Paused[name] = reason
	}
	return o, nil
}

// wake tells the leader that there is something to read. It is a courtesy: the leader
// reads it anyway, a little later.
func (l *Ledger) wake(ctx context.Context) {
	_, _ = l.store.run(ctx, l.keys.lock(), func(c redis.Conn) (any, error) {
		return redis.DoContext(c, ctx, "PUBLISH", l.keys.wake(), "control")
	})
}

// Watch calls look whenever orders may have been given, until ctx ends: upon a hint,
// and every so often, since hints may be lost. It calls it at the beginning.
func (l *Ledger) Watch(ctx context.Context, every time.Duration, look func()) {
	hints := make(chan elector.Hint, 1)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		l.store.WatchAll(ctx, Watched{LockKey: l.keys.lock(), Hints: hints})
	}()
	defer func() { <-watched }()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil {
		look()
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-hints:
		}
	}
}

// Progress is how far a run is.
type Progress struct {
	Rows, Dead int64
	Batches    int64
	Backlog    int64 // that waited when the run began, and that it has to do; -1: not known
}

// Progress tells how far the job's running run is. fresh, if not zero, says that it has
// done everything that was to be done before: a run that never ends succeeds that way.
// It reports false if another run is the job's running one by now.
func (l *Ledger) Progress(ctx context.Context, r job.Run, p Progress, fresh time.Time) (bool, error) {
	success := any("")
	if !fresh.IsZero() {
		success = fresh.UnixMilli()
	}
	ours, err := redis.Bool(l.script(ctx, progressScript, []any{
		l.keys.job(r.Job), r.ID, success, "rows", p.Rows, "dead", p.Dead, "batches", p.Batches, "backlog", p.Backlog,
	}))
	if err != nil {
		return false, fmt.Errorf("tell the progress of job %q: %w", r.Job, err)
	}
	return ours, nil
}

// progressOf reads back what Progress wrote.
func progressOf(fields map[string]string) *Progress {
	backlog, told := fields["running_backlog"]
	if !told {
		return nil
	}
	return &Progress{
		Rows: intField(fields["running_rows"]), Dead: intField(fields["running_dead"]),
		Batches: intField(fields["running_batches"]), Backlog: intField(backlog),
	}
}
