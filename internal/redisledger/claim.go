package redisledger

import (
	"context"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/job"
	"baton/internal/redisconn"
)

// claimed describes a claim: its run, its conditions, and its name in errors.
type claimed struct {
	run         job.Run
	needs, what string
	which       any
}

func (l *Ledger) claimed(r job.Run) claimed {
	c := claimed{run: r, needs: "slot", which: r.Attempt, what: fmt.Sprintf("claim slot %s of job %q", r.Slot.Format(time.RFC3339), r.Job)}
	switch r.Trigger {
	case job.TriggerManual:
		c.needs, c.which = "request", l.keys.Request(r.Job)
		c.what = fmt.Sprintf("claim manual run %s of job %q", r.ID, r.Job)
	case job.TriggerRetry:
		c.needs = "retry"
		c.what = fmt.Sprintf("claim attempt %d of slot %s of job %q", r.Attempt, r.Slot.Format(time.RFC3339), r.Job)
	}
	return c
}

// args are those of the script, up to the run itself.
func (l *Ledger) args(c claimed, run ...any) []any {
	r := c.run
	return append([]any{
		l.fence, l.keys.Job(r.Job), l.keys.Control(), l.keys.Runs(r.Job),
		r.Term.Owner, r.Slot.UnixMilli(), r.ID, r.Term.Epoch, c.needs, c.which,
	}, run...)
}

// verdict translates the script's reply into an error.
func (l *Ledger) verdict(c claimed, reply any, err error) error {
	answer, err := redis.Strings(reply, err)
	if err != nil {
		return fmt.Errorf("%s: %w", c.what, redisconn.Explain(err))
	}
	switch answer[0] {
	case "ok":
		return nil
	case "done":
		return fmt.Errorf("%s: %w", c.what, job.ErrDone)
	case "paused":
		return fmt.Errorf("%s: %w", c.what, &job.PausedError{Reason: answer[1]})
	case "not_leader":
		return fmt.Errorf("%s: %w (%q has owner %q)", c.what, job.ErrNotLeader, l.fence, answer[1])
	case "future":
		return fmt.Errorf("%s: %w: by %s ms of redis' time; is this host's clock right? Check its time synchronisation", c.what,
			job.ErrAhead, answer[1])
	}
	if c.needs == "request" {
		return fmt.Errorf("%s: %w: started before, withdrawn, or too old", c.what, job.ErrSlotTaken)
	}
	return fmt.Errorf("%s: %w (last slot in ms: %s)", c.what, job.ErrSlotTaken, answer[1])
}

// Claim implements job.Ledger.
func (l *Ledger) Claim(ctx context.Context, r job.Run) error {
	c := l.claimed(r)
	started, err := encodeOpen(job.Record{Run: r, State: job.StateRunning, Started: time.Now()})
	if err != nil {
		return fmt.Errorf("%s: %w", c.what, err)
	}
	reply, err := l.script(ctx, claimScripts.of(l.options), l.args(c, started))
	return l.verdict(c, reply, err)
}

// ClaimIdle implements job.Ledger. All claims go out in one pipeline, and each is a script that
// claims and records.
func (l *Ledger) ClaimIdle(ctx context.Context, recs []job.Record) []error {
	asked := make([]claimed, len(recs))
	args := make([][]any, len(recs))
	for i, rec := range recs {
		asked[i] = l.claimed(rec.Run)
		args[i] = append(l.args(asked[i], "", l.options.Keep, l.options.MaxAge.Milliseconds()), startFields(rec)...)
		args[i] = append(args[i], endFields(rec)...)
	}
	answers := make([]error, len(recs))
	for i, a := range l.scripts(ctx, claimScripts.of(l.options), args) {
		answers[i] = l.verdict(asked[i], a.reply, a.err)
	}
	return answers
}

// answer is one of a pipeline.
type answer struct {
	reply any
	err   error
}

// scripts runs a script with each of some arguments, in one pipeline.
func (l *Ledger) scripts(ctx context.Context, s *redis.Script, args [][]any) []answer {
	answers := make([]answer, len(args))
	replies, err := func() ([]any, error) {
		c, err := l.store.Conn(ctx, l.keys.Lock())
		if err != nil {
			return nil, err
		}
		defer c.Close() // it goes back to the pool
		for _, a := range args {
			if err := s.SendHash(c, a...); err != nil {
				return nil, err
			}
		}
		return redisconn.ReceiveAll(ctx, c)
	}()
	for i := range answers {
		if answers[i].err = err; err != nil {
			continue
		}
		answers[i].reply = replies[i]
		refusal, refused := replies[i].(redis.Error)
		switch {
		case refused && redisconn.Code(refusal) == "NOSCRIPT": // nothing was done; the first to ask again makes it known
			answers[i].reply, answers[i].err = l.script(ctx, s, args[i])
		case refused:
			answers[i] = answer{err: refusal}
		}
	}
	return answers
}
