package job

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"baton/internal/job/plan"
)

// maxEntries is the maximum number of waiting entries per job.
const maxEntries = 1000

// outbox records missed slots, and results that could not be recorded at once, in the background. It retries until FinishTimeout after the
// term's end. It records the entries of one job in order, and takes turns among the jobs, so that an entry that the ledger refuses does not
// block other jobs.
type outbox struct {
	recorder
	ctx  context.Context // ends some time after the term
	gone chan struct{}   // closed when the outbox has stopped

	mu      sync.Mutex
	entries map[string][]*entry // by job
	turn    []string            // jobs with entries
	closing bool
	wake    chan struct{}
}

// entry is a miss or a result to be recorded.
type entry struct {
	miss *Missed
	rec  *Record
	sent bool        // the entry may be recorded already, so no slots may be added
	done func(error) // called in the loop
}

// recorder is the part of a session that the outbox uses to record.
type recorder struct {
	ledger Ledger
	term   Term
	cfg    *Config
	now    func() time.Time // in the precision of slots
	log    *zap.Logger
	post   func(func()) // runs a function in the loop
}

// newOutbox returns the outbox of a term. The outbox ends at most FinishTimeout after the term's context.
func newOutbox(term context.Context, c recorder) *outbox {
	o := &outbox{recorder: c, gone: make(chan struct{}), entries: make(map[string][]*entry), wake: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.WithoutCancel(term))
	o.ctx = ctx
	context.AfterFunc(term, func() {
		timer := time.NewTimer(c.cfg.FinishTimeout)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-o.gone:
		}
		cancel()
	})
	return o
}

// miss adds missed slots to the outbox. The loop calls the function done when they are recorded. If the slots continue the last waiting
// entry, they are added to this entry and share its done function. In this case miss returns false.
func (o *outbox) miss(m Missed, done func(Missed, error)) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if waiting := o.entries[m.Job]; len(waiting) > 0 {
		if last := waiting[len(waiting)-1]; last.miss != nil && !last.sent && !last.miss.unclaimed() && last.miss.joins(m) {
			last.miss.Slot = m.Slot
			last.miss.Count = min(last.miss.Count+m.Count, plan.MaxCounted)
			last.miss.Err = m.Err
			return false
		}
	}
	o.add(m.Job, &entry{miss: &m, done: func(err error) { done(m, err) }})
	return true
}

// joins reports whether the report in the argument next begins where this report ends.
func (m *Missed) joins(next Missed) bool {
	return m.Reason == next.Reason && m.Count > 0 && !next.After.IsZero() && next.After.Equal(m.Slot)
}

// record adds the result of a run to the outbox.
func (o *outbox) record(rec Record, done func(error)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.add(rec.Job, &entry{rec: &rec, done: done})
}

func (o *outbox) add(job string, e *entry) {
	if len(o.entries[job]) == 0 {
		o.turn = append(o.turn, job)
	}
	o.entries[job] = append(o.entries[job], e)
	if n := len(o.entries[job]); n > maxEntries {
		o.entries[job] = append(o.entries[job][:1], o.entries[job][2:]...) // keep the entry that is being sent
	}
	o.nudge()
}

func (o *outbox) nudge() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// close makes the outbox stop as soon as it is empty, or when its time is over.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closing = true
	o.nudge()
}

// run sends entries until the outbox is closed.
func (o *outbox) run() {
	defer close(o.gone)
	failed := 0 // in a row
	for o.ctx.Err() == nil {
		job, e, closing := o.next()
		if e == nil {
			if closing {
				return
			}
			select {
			case <-o.wake:
			case <-o.ctx.Done():
			}
			continue
		}
		err := o.send(e)
		if o.finished(job, e, err) {
			failed = 0
			continue
		}
		if failed++; failed == 1 {
			o.log.Debug("cannot record a job's missed slots or result; retrying", zap.String("job", job), zap.Error(err))
		}
		_ = pause(o.ctx, min(retryMin<<min(failed-1, 10), retryMax))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if left := len(o.turn); left > 0 {
		o.log.Warn("term ended before all run results were recorded", jobFields(o.turn)...)
	}
}

// next returns the first entry of the job whose turn is next, and reports whether the outbox is closing.
func (o *outbox) next() (string, *entry, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.turn) == 0 {
		return "", nil, o.closing
	}
	job := o.turn[0]
	e := o.entries[job][0]
	e.sent = true
	return job, e, o.closing
}

func (o *outbox) send(e *entry) error {
	ctx, cancel := context.WithTimeout(o.ctx, o.cfg.ClaimTimeout)
	defer cancel()
	if e.rec != nil {
		err := o.ledger.Finish(ctx, *e.rec)
		o.cfg.OnAttempt(e.rec.Job, err)
		return err
	}
	if now := o.now(); e.miss.nothingKnown() && now.Before(e.miss.Slot) {
		e.miss.First, e.miss.Slot = now, now // the clock was ahead when the term began
	}
	err := o.ledger.Miss(ctx, o.term, *e.miss)
	o.cfg.OnAttempt(e.miss.Job, err)
	return err
}

// finished removes an entry if the ledger has answered. An unanswered entry waits for the job's next turn.
func (o *outbox) finished(job string, e *entry, err error) bool {
	done := err == nil || errors.Is(err, ErrNotLeader) || e.miss != nil &&
		(errors.Is(err, ErrSlotTaken) || errors.Is(err, ErrAhead) && !e.miss.nothingKnown())
	if done && e.done != nil {
		o.post(func() { e.done(err) })
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.turn = o.turn[1:]
	if done {
		o.entries[job] = o.entries[job][1:]
	}
	if len(o.entries[job]) > 0 {
		o.turn = append(o.turn, job)
	} else {
		delete(o.entries, job)
	}
	return done
}
