package redisledger

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
)

// allRuns stands in an order to cancel for all runs of the job.
const allRuns = "*"

// Cancel is an order to cancel runs of a job.
type Cancel struct {
	Job     string
	ID      string // of the order
	RunID   string // "": all runs of the job, also waiting ones and retrials
	By      string // "by alice: reason"
	Expired bool   // too old to be carried out
}

// Cancelled is the outcome of an order to cancel runs.
type Cancelled struct {
	ID    string   `json:"-"`    // of the order
	Runs  []string `json:"runs"` // the IDs of the cancelled runs
	Error string   `json:"error,omitempty"`
	Retry int      `json:"retry,omitempty"` // the attempt of the dropped retrial; 0: no retrial was dropped
}

// OrderCancel orders the leader to cancel runs. The order expires after the duration goodFor. OrderCancel returns [ErrAsked] if
// another order to cancel runs of this job waits. Calls with the same ID are one order.
func (l *Ledger) OrderCancel(ctx context.Context, c Cancel, goodFor time.Duration) error {
	run := c.RunID
	if run == "" {
		run = allRuns
	}
	reply, err := redis.Strings(l.script(ctx, cancelScript, []any{l.keys.Control(), l.keys.Cancel(c.Job), c.ID, goodFor.Milliseconds(),
		run, c.By}))
	switch {
	case err != nil:
		return fmt.Errorf("request to cancel runs of job %q: %w", c.Job, err)
	case reply[0] == "asked":
		return fmt.Errorf("%w, %s", ErrAsked, reply[1])
	}
	l.wake(ctx)
	return nil
}

// AnswerCancel records the outcome of an order to cancel runs. It returns false if the order no longer exists.
func (l *Ledger) AnswerCancel(ctx context.Context, c Cancel, answer Cancelled) (bool, error) {
	text, err := json.Marshal(answer)
	if err != nil {
		return false, err
	}
	return l.end(ctx, cancels, c.Job, c.ID, string(text))
}

// WithdrawCancel withdraws an order to cancel runs. It returns false if the leader has already answered the order.
func (l *Ledger) WithdrawCancel(ctx context.Context, c Cancel) (bool, error) {
	return l.end(ctx, cancels, c.Job, c.ID, "")
}

// cancelledOf decodes the outcome that AnswerCancel wrote.
func cancelledOf(fields map[string]string) Cancelled {
	c := Cancelled{}
	if err := json.Unmarshal([]byte(fields["cancelled"]), &c); err != nil {
		return Cancelled{}
	}
	c.ID = fields["cancelled_id"]
	return c
}
