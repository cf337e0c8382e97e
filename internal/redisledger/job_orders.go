package redisledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/job"
	"baton/internal/redisconn"
	"baton/internal/redislock/script"
)

var (
	pauseScript     = ledgerScript(1, "job_pause")
	requestScript   = ledgerScript(2, "job_request")
	queueScript     = ledgerScript(1, "job_queue")
	answerScript    = ledgerScript(2, "job_answer")
	cancelScript    = ledgerScript(1, "job_cancel")
	cancelledScript = ledgerScript(2, "job_cancelled")
	progressScript  = ledgerScript(1, "job_progress")
)

// ErrAsked is the answer to an order where another of its kind waits already.
var ErrAsked = errors.New("it has been asked for already")

// Refusal is why a manual run did not come about.
type Refusal struct {
	ID     string // that it was asked for by
	Reason string
}

// Request is that a manual run of a job is asked for.
type Request struct {
	Job   string
	ID    string // the run's
	By    string // "by alice: reason"
	Force bool   // run it whatever the job's overlap is
	// Queued: a leader has it wait for another run to end, and keeps it alive.
	Queued bool
}

// Request asks the leader for a manual run, which it may claim for so long. It is
// refused with [job.ErrPaused] or [ErrAsked]. Asked again under the same ID it is one
// request.
func (l *Ledger) Request(ctx context.Context, r Request, goodFor time.Duration) error {
	force := "-"
	if r.Force {
		force = "force"
	}
	reply, err := redis.Strings(l.script(ctx, requestScript,
		[]any{l.keys.Job(r.Job), l.keys.Control(), l.keys.Request(r.Job), r.ID, goodFor.Milliseconds(), force, r.By}))
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

// Queue records that a request waits for another run to end, and is good for so long yet.
// It reports false if it is not there any more.
func (l *Ledger) Queue(ctx context.Context, r Request, goodFor time.Duration) (bool, error) {
	waits, err := redis.Bool(l.script(ctx, queueScript, []any{l.keys.Control(), l.keys.Request(r.Job), r.ID, goodFor.Milliseconds()}))
	if err != nil {
		return false, fmt.Errorf("have request %s for a run of job %q wait: %w", r.ID, r.Job, err)
	}
	return waits, nil
}

// Withdraw takes a request back. It reports false if it is too late: it was answered.
func (l *Ledger) Withdraw(ctx context.Context, r Request) (bool, error) {
	return l.end(ctx, manualRuns, r.Job, r.ID, "")
}

// Refuse answers a request that cannot be met. It reports false if it is not there.
func (l *Ledger) Refuse(ctx context.Context, r Request, reason string) (bool, error) {
	return l.end(ctx, manualRuns, r.Job, r.ID, reason)
}

// orderKind is a kind of orders to a job: how one is ended.
type orderKind struct {
	end   *redis.Script
	field func(k script.Keys, job string) string // of the control hash
	what  string                                 // names one in errors, by its id and job
}

var (
	manualRuns = orderKind{answerScript, script.Keys.Request, "request %s for a run of job %q"}
	cancels    = orderKind{cancelledScript, script.Keys.Cancel, "order %s to cancel runs of job %q"}
)

// end removes an order and records the answer, unless that is "". It reports false if the
// order is not there.
func (l *Ledger) end(ctx context.Context, k orderKind, job, id, answer string) (bool, error) {
	ended, err := redis.Bool(l.script(ctx, k.end, []any{l.keys.Job(job), l.keys.Control(), k.field(l.keys, job), id, answer}))
	if err != nil {
		return false, fmt.Errorf("answer "+k.what+": %w", id, job, err)
	}
	return ended, nil
}

// Orders are what operators ask of the leader's jobs.
type Orders struct {
	Requests []Request // in no order
	Cancels  []Cancel
	// Paused says of each job that was asked about why it is paused, itself or with all
	// others; "" if it is not.
	Paused map[string]string
}

// Now is Redis' time, by which slots are claimed.
func (l *Ledger) Now(ctx context.Context) (time.Time, error) {
	c, err := l.store.Conn(ctx, l.keys.Lock())
	if err != nil {
		return time.Time{}, err
	}
	defer c.Close()
	reply, err := redis.DoContext(c, ctx, "TIME")
	if err != nil {
		return time.Time{}, fmt.Errorf("ask for redis' time: %w", redisconn.Explain(err))
	}
	return redisconn.Time(reply)
}

// Orders reads all orders, and the pauses of some jobs, in one round trip.
func (l *Ledger) Orders(ctx context.Context, jobs []string) (o Orders, err error) {
	c, err := l.store.Conn(ctx, l.keys.Lock())
	if err != nil {
		return o, err
	}
	defer c.Close()
	commands := append(l.askPauses(), redisconn.Cmd("HGETALL", l.keys.Control()))
	for _, name := range jobs {
		commands = append(commands, redisconn.Cmd("HMGET", append([]any{l.keys.Job(name)}, pauseFields("")...)...))
	}
	if err := redisconn.SendAll(c, commands...); err != nil {
		return o, fmt.Errorf("read what is asked of the jobs: %w", redisconn.Explain(err))
	}
	replies, err := redisconn.ReceiveAll(ctx, c)
	if err != nil {
		return o, fmt.Errorf("read what is asked of the jobs: %w", redisconn.Explain(err))
	}
	now, all, err := pauseOfAll(replies)
	if err != nil {
		return o, fmt.Errorf("read what is asked of the jobs in %q: %w", l.keys.Control(), redisconn.Explain(err))
	}
	fields, err := redis.StringMap(replies[2], nil)
	if err != nil {
		return o, fmt.Errorf("read what is asked of the jobs in %q: %w", l.keys.Control(), redisconn.Explain(err))
	}
	o.Requests, o.Cancels = ordersIn(l.keys, fields, now)
	o.Paused = make(map[string]string, len(jobs))
	for i, name := range jobs {
		p, err := decodePause(replies[i+3], "", now)
		if err != nil {
			return o, fmt.Errorf("read whether job %q is paused: %w", name, redisconn.Explain(err))
		}
		if p = longer(p, all); p != nil {
			o.Paused[name] = p.Reason
		} else {
			o.Paused[name] = ""
		}
	}
	return o, nil
}

// ordersIn reads the orders in the control hash.
func ordersIn(k script.Keys, fields map[string]string, now time.Time) (requests []Request, cancels []Cancel) {
	for field, value := range fields {
		parts := strings.SplitN(value, " ", 4)
		if len(parts) != 4 {
			continue
		}
		if name, ok := strings.CutPrefix(field, k.Request("")); ok {
			requests = append(requests, Request{Job: name, ID: parts[0], Force: parts[2] == "force", Queued: parts[2] == "queued",
				By: parts[3]})
		}
		if name, ok := strings.CutPrefix(field, k.Cancel("")); ok {
			c := Cancel{Job: name, ID: parts[0], RunID: parts[2], By: parts[3], Expired: millisField(parts[1]).Before(now)}
			if c.RunID == allRuns {
				c.RunID = ""
			}
			cancels = append(cancels, c)
		}
	}
	return requests, cancels
}

// wake notifies the leader that there is something to read. It is a courtesy: the leader
// reads it anyway, a little later.
func (l *Ledger) wake(ctx context.Context) {
	_, _ = l.store.Run(ctx, l.keys.Lock(), func(c redis.Conn) (any, error) {
		return redis.DoContext(c, ctx, "PUBLISH", l.keys.Wake(), "control")
	})
}

// Progress is how far a run is.
type Progress struct {
	Rows, Dead int64
	Batches    int64
	Backlog    int64 // that waited when the run began, and that it has to do; -1: not known
}

// Progress records how far an open run is. fresh, if not zero, says that it has
// done everything that was to be done before: a run that never ends succeeds that way.
// It reports false if the run is not open any more.
func (l *Ledger) Progress(ctx context.Context, r job.Run, p Progress, fresh time.Time) (bool, error) {
	success := any("")
	if !fresh.IsZero() {
		success = fresh.UnixMilli()
	}
	ours, err := redis.Bool(l.script(ctx, progressScript, []any{
		l.keys.Job(r.Job), r.ID, success, fmt.Sprintf("%d %d %d %d", p.Rows, p.Dead, p.Batches, p.Backlog),
	}))
	if err != nil {
		return false, fmt.Errorf("tell the progress of job %q: %w", r.Job, err)
	}
	return ours, nil
}

// progressOf reads back what Progress wrote.
func progressOf(text string) *Progress {
	parts := strings.Fields(text)
	if len(parts) != 4 {
		return nil
	}
	return &Progress{Rows: intField(parts[0]), Dead: intField(parts[1]), Batches: intField(parts[2]), Backlog: intField(parts[3])}
}
