package redisledger

import (
	"context"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/job"
	"baton/internal/redisconn"
)

// claimed describes the claim of a run: the run, the conditions for the claim, and a name of the claim for error messages.
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

// args returns the arguments of the script that claims a run. The argument run contains the last of these arguments, which describe
// the run itself.
func (l *Ledger) args(c claimed, run ...any) []any {
	r := c.run
	return append([]any{
		l.fence, l.keys.Job(r.Job), l.keys.Control(), l.keys.Runs(r.Job),
		r.Term.Owner, r.Slot.UnixMilli(), r.ID, r.Term.Epoch, c.needs, c.which,
	}, run...)
}

// verdict translates the reply of the script that claims a run into an error. It returns nil if the run was claimed.
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
		return fmt.Errorf("%s: %w: the difference is %s ms; is this host's clock right? Check its time synchronisation", c.what,
			job.ErrAhead, answer[1])
	}
	if c.needs == "request" {
		return fmt.Errorf("%s: %w: the run was started before or withdrawn, or its order is too old", c.what, job.ErrSlotTaken)
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

// ClaimIdle implements job.Ledger. It sends all claims in one pipeline. Each claim is a script that also records the run's end.
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

// answer is the reply to one script of a pipeline, or the error of this script.
type answer struct {
	reply any
	err   error
}

// scripts runs a script once for each element of args, in one pipeline.
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
		case refused && redisconn.Code(refusal) == "NOSCRIPT": // no script was run; the first repetition sends the script's text
			answers[i].reply, answers[i].err = l.script(ctx, s, args[i])
		case refused:
			answers[i] = answer{err: refusal}
		}
	}
	return answers
}
