package job

import (
	"context"
	"time"
)

func (m *machine) runNow(ctx context.Context, order Manual, reply chan<- error) {
	for _, f := range m.active {
		switch {
		case f.run.ID != order.ID:
		case f.answered:
			m.answer(reply, nil) // the run is still in progress
			return
		default:
			f.replies = append(f.replies, reply)
			return
		}
	}
	for _, it := range m.queued {
		if it.run.ID == order.ID {
			it.ctx, it.reply = ctx, reply
			return
		}
	}
	now := m.now
	it := &dueRun{
		run: Run{ID: order.ID, Slot: now, Trigger: TriggerManual, Attempt: 1, By: order.By, Forced: order.Force},
		due: now, ctx: ctx, reply: reply,
	}
	switch why, v := m.admit(it); v {
	case admitted:
		if m.timing.endless() {
			m.next = time.Time{} // the job would have been restarted later
		}
		m.begin(it)
	case deferred:
		m.queued = append(m.queued, it)
		m.advance()
	case rejected:
		m.refuse(it, why)
	}
}

func (m *machine) cancel(runID string, cause error) Cancelled {
	var done Cancelled
	for _, f := range m.active {
		if f.void || runID != "" && f.run.ID != runID {
			continue
		}
		m.cancelRun(f, cause)
		switch {
		case !f.returned:
			done.Runs = append(done.Runs, f.run.ID)
		case f.again:
			done.Retry = f.run.Attempt + 1
		}
	}
	kept := m.queued[:0:0]
	for _, it := range m.queued {
		if !it.manual() || runID != "" && it.run.ID != runID {
			kept = append(kept, it)
			continue
		}
		m.answer(it.reply, cause)
		done.Runs = append(done.Runs, it.run.ID)
	}
	m.queued = kept
	if runID == "" {
		m.cancels, m.cancelled = m.cancels+1, cause
		m.giveUpSlots()
		m.giveUpRetry(cause, false)
	}
	m.advance()
	return done
}

// giveUpRetry drops the job's pending retrials, both in this machine and in the ledger. If keepReruns is true, it keeps the reruns of lost
// runs.
func (m *machine) giveUpRetry(why error, keepReruns bool) {
	if m.retry != nil && !(keepReruns && m.retry.rerun) {
		m.queued, m.retry = append(m.queued, m.retry.item(m)), nil
	}
	kept := m.queued[:0:0]
	for _, it := range m.queued {
		if !it.retried() || keepReruns && it.rerun {
			kept = append(kept, it)
			continue
		}
		m.void(it, why)
	}
	m.queued = kept
}

func (m *machine) pausedBy(reason string) {
	m.timing.pauseChanged(m, reason)
	m.paused = reason != ""
}
