package redisledger

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
)

// allRuns means every run of a job.
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
	Runs  []string `json:"runs"` // that were cancelled
	Error string   `json:"error,omitempty"`
	Retry int      `json:"retry,omitempty"` // the attempt of the retrial that was dropped; 0 without one
}

// OrderCancel asks the leader to cancel runs within a time. [ErrAsked] if another order waits.
// A repeated call with the same ID is one order.
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

// AnswerCancel records the outcome of an order. It reports false if the order is gone.
func (l *Ledger) AnswerCancel(ctx context.Context, c Cancel, answer Cancelled) (bool, error) {
	text, err := json.Marshal(answer)
	if err != nil {
		return false, err
	}
	return l.end(ctx, cancels, c.Job, c.ID, string(text))
}

// WithdrawCancel takes an order back. It reports false if it is too late: it was answered.
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
