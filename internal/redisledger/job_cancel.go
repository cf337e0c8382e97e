package redisledger

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
)

// allRuns stands for every run of a job.
const allRuns = "*"

// Cancel is that runs of a job shall be cancelled.
type Cancel struct {
	Job     string
	ID      string // of the order
	RunID   string // "": all of the job's, and what waits or is to be tried again
	By      string // "by alice: reason"
	Expired bool   // it is not expected to be carried out any more
}

// Cancelled is what an order to cancel runs came to.
type Cancelled struct {
	ID    string   `json:"-"`    // of the order
	Runs  []string `json:"runs"` // that were cancelled
	Error string   `json:"error,omitempty"`
	Retry int      `json:"retry,omitempty"` // the attempt that will not be made; 0: none was to come
}

// OrderCancel asks the leader to cancel runs, which it may do for so long. [ErrAsked] if
// another order waits. Asked again under the same ID it is one order.
func (l *Ledger) OrderCancel(ctx context.Context, c Cancel, goodFor time.Duration) error {
	run := c.RunID
	if run == "" {
		run = allRuns
	}
	reply, err := redis.Strings(l.script(ctx, cancelScript, []any{l.keys.Control(), l.keys.Cancel(c.Job), c.ID, goodFor.Milliseconds(),
		run, c.By}))
	switch {
	case err != nil:
		return fmt.Errorf("ask for runs of job %q to be cancelled: %w", c.Job, err)
	case reply[0] == "asked":
		return fmt.Errorf("%w, %s", ErrAsked, reply[1])
	}
	l.wake(ctx)
	return nil
}

// AnswerCancel records the outcome of an order. It reports false if the order is not there any more.
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

// cancelledOf reads back what AnswerCancel wrote.
func cancelledOf(fields map[string]string) Cancelled {
	c := Cancelled{}
	if err := json.Unmarshal([]byte(fields["cancelled"]), &c); err != nil {
		return Cancelled{}
	}
	c.ID = fields["cancelled_id"]
	return c
}
