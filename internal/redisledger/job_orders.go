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

// ErrAsked means that another order of the same kind is already waiting.
var ErrAsked = errors.New("already requested")

// Refusal is the reason why a manual run was refused.
type Refusal struct {
	ID     string // of the request
	Reason string
}

// Request asks for a manual run of a job.
type Request struct {
	Job   string
	ID    string // the ID of the run
	By    string // "by alice: reason"
	Force bool   // run it regardless of the job's overlap
	// Queued means that the leader waits for another run to end, and keeps the request from expiring.
	Queued bool
}

// Request asks the leader for a manual run. The request expires after the duration goodFor, unless the leader claims it. Request
// returns [job.ErrPaused] if the job is paused, and [ErrAsked] if another request for the job waits. Calls with the same ID are one
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
		return fmt.Errorf("request a run of job %q: %w", r.Job, err)
	case reply[0] == "paused":
		return &job.PausedError{Reason: reply[1]}
	case reply[0] == "asked":
		return fmt.Errorf("%w, %s", ErrAsked, reply[1])
	}
	l.wake(ctx)
	return nil
}

// Queue records that a request waits for the end of another run. From now on, the request expires only after the duration goodFor.
// It returns false if the request no longer exists.
func (l *Ledger) Queue(ctx context.Context, r Request, goodFor time.Duration) (bool, error) {
	waits, err := redis.Bool(l.script(ctx, queueScript, []any{l.keys.Control(), l.keys.Request(r.Job), r.ID, goodFor.Milliseconds()}))
	if err != nil {
		return false, fmt.Errorf("queue request %s for a run of job %q: %w", r.ID, r.Job, err)
	}
	return waits, nil
}

// Withdraw withdraws a request. It returns false if the leader has already answered the request.
func (l *Ledger) Withdraw(ctx context.Context, r Request) (bool, error) {
	return l.end(ctx, manualRuns, r.Job, r.ID, "")
}

// Refuse answers a request that the leader cannot fulfil. It returns false if the request no longer exists.
func (l *Ledger) Refuse(ctx context.Context, r Request, reason string) (bool, error) {
	return l.end(ctx, manualRuns, r.Job, r.ID, reason)
}

// orderKind is a kind of order for a job. It contains the script that ends such an order.
type orderKind struct {
	end   *redis.Script
	field func(k script.Keys, job string) string // returns the field in the control hash
	what  string                                 // its name in errors, with id and job
}

var (
	manualRuns = orderKind{answerScript, script.Keys.Request, "request %s for a run of job %q"}
	cancels    = orderKind{cancelledScript, script.Keys.Cancel, "order %s to cancel runs of job %q"}
)

// end removes an order for a job, and records the leader's answer if there is one. It returns false if the order no longer exists.
func (l *Ledger) end(ctx context.Context, k orderKind, job, id, answer string) (bool, error) {
	ended, err := redis.Bool(l.script(ctx, k.end, []any{l.keys.Job(job), l.keys.Control(), k.field(l.keys, job), id, answer}))
	if err != nil {
		return false, fmt.Errorf("answer "+k.what+": %w", id, job, err)
	}
	return ended, nil
}

// Orders are the pending orders of operators for the leader's jobs.
type Orders struct {
	Requests []Request // in any order
	Cancels  []Cancel
	// Operations are the operations that have not ended, in any order.
	Operations []Operation
	// Paused maps each requested job to the reason of its pause, or of the pause of all jobs. The reason is "" if the job is not paused.
	Paused map[string]string
}

// Now returns Redis' time. Claims of slots use this clock.
func (l *Ledger) Now(ctx context.Context) (time.Time, error) {
	c, err := l.store.Conn(ctx, l.keys.Lock())
	if err != nil {
		return time.Time{}, err
	}
	defer c.Close()
	reply, err := redis.DoContext(c, ctx, "TIME")
	if err != nil {
		return time.Time{}, fmt.Errorf("read redis' time: %w", redisconn.Explain(err))
	}
	return redisconn.Time(reply)
}

// Orders reads all orders, and the pauses of the named jobs, in one round trip.
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
		return o, fmt.Errorf("read the orders for jobs: %w", redisconn.Explain(err))
	}
	replies, err := redisconn.ReceiveAll(ctx, c)
	if err != nil {
		return o, fmt.Errorf("read the orders for jobs: %w", redisconn.Explain(err))
	}
	now, all, err := pauseOfAll(replies)
	if err != nil {
		return o, fmt.Errorf("read the orders for jobs in %q: %w", l.keys.Control(), redisconn.Explain(err))
	}
	fields, err := redis.StringMap(replies[2], nil)
	if err != nil {
		return o, fmt.Errorf("read the orders for jobs in %q: %w", l.keys.Control(), redisconn.Explain(err))
	}
	o.Requests, o.Cancels = ordersIn(l.keys, fields, now)
	for field, value := range fields {
		if name, ok := strings.CutPrefix(field, l.keys.Operation("")); ok {
			if op, ok := operationIn(name, value); ok {
				o.Operations = append(o.Operations, op)
			}
		}
	}
	o.Paused = make(map[string]string, len(jobs))
	for i, name := range jobs {
		p, err := decodePause(replies[i+3], "", now)
		if err != nil {
			return o, fmt.Errorf("read whether job %q is paused: %w", name, redisconn.Explain(err))
		}
		if p := longer(p.now, all.now); p != nil {
			o.Paused[name] = p.Reason
		} else {
			o.Paused[name] = ""
		}
	}
	return o, nil
}

// ordersIn decodes the orders to run jobs and to cancel runs from the fields of the control hash.
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

// wake makes the leader read the orders now. Otherwise the leader would read them at its next regular time.
func (l *Ledger) wake(ctx context.Context) {
	_, _ = l.store.Run(ctx, l.keys.Lock(), func(c redis.Conn) (any, error) {
		return redis.DoContext(c, ctx, "PUBLISH", l.keys.Wake(), "control")
	})
}

// Progress says how far a run is.
type Progress struct {
	Rows, Dead int64
	Batches    int64
	Backlog    int64 // records that waited when the run began; -1: not known
}

// Progress records the progress of an open run. If the time fresh is not zero, everything that was written before that time has been
// flushed. For a run that never ends, this counts as a success. Progress returns false if the run is no longer open.
func (l *Ledger) Progress(ctx context.Context, r job.Run, p Progress, fresh time.Time) (bool, error) {
	success := any("")
	if !fresh.IsZero() {
		success = fresh.UnixMilli()
	}
	ours, err := redis.Bool(l.script(ctx, progressScript, []any{
		l.keys.Job(r.Job), r.ID, success, fmt.Sprintf("%d %d %d %d", p.Rows, p.Dead, p.Batches, p.Backlog),
	}))
	if err != nil {
		return false, fmt.Errorf("record the progress of job %q: %w", r.Job, err)
	}
	return ours, nil
}

// progressOf decodes the text that Progress wrote.
func progressOf(text string) *Progress {
	parts := strings.Fields(text)
	if len(parts) != 4 {
		return nil
	}
	return &Progress{Rows: intField(parts[0]), Dead: intField(parts[1]), Batches: intField(parts[2]), Backlog: intField(parts[3])}
}
