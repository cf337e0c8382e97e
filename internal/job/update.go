package job

import (
	"context"
	"reflect"
	"time"

	"baton/internal/job/plan"
	"baton/internal/job/schedule"
)

// Update replaces the workload of the running term atomically. When it returns, replaced jobs
// start nothing more, and unchanged jobs are not affected:
//
//   - Runs continue as they were started. Only those of
//     "@always" are ended, if their work has changed, or their schedule, or the job is gone.
//   - A job whose schedule, zone or jitter has changed has its slots from now on. Slots
//     of the old one that wait are missed.
//   - A new job has its slots from now on, too. What passed before is not caught up.
//   - A job that is gone starts nothing more, and is forgotten when its last run has ended.
//
// [ErrNotLeader] if there is no term.
func (r *Runner) Update(ctx context.Context, w Workload) error {
	if err := validate(w.Jobs); err != nil {
		return err
	}
	return r.order(ctx, func(s *session, reply chan<- error) {
		s.update(w)
		reply <- nil
	})
}

func (s *session) update(w Workload) {
	s.limit, s.idle = w.MaxConcurrent, w.Idle
	var fresh []string
	wanted := make(map[string]bool, len(w.Jobs))
	for _, j := range w.Jobs {
		wanted[j.Name] = true
		if p := s.jobs[j.Name]; p != nil {
			if p.removed && !p.known { // the ledger's answer meanwhile was dropped
				fresh = append(fresh, j.Name)
			}
			s.hand(p, func(m *machine) { m.change(j) })
			continue
		}
		s.add(j, s.nowMillis())
		fresh = append(fresh, j.Name)
	}
	for name, p := range s.jobs {
		if !wanted[name] && !p.removed {
			s.hand(p, (*machine).remove)
		}
	}
	go s.askStandings(fresh, true)
	s.admit()
}

// change replaces a job by another one of the same name.
func (m *machine) change(j Job) {
	old, back := m.job, m.removed
	m.job, m.removed = j, false
	if j.Retry.Limit == 0 {
		m.giveUpRetry(errNoRetry, j.OnLost == plan.OnLostRerun)
	}
	switch {
	case back || old.Jitter != j.Jitter || !sameSchedule(old.Schedule, j.Schedule):
		m.reschedule(old)
	default:
		m.timing.changed(m, old)
	}
	m.advance()
}

// reschedule gives a job another schedule.
func (m *machine) reschedule(old Job) {
	changed := m.job
	m.job = old // for the slots that are dropped
	m.giveUpSlots()
	m.job = changed
	m.timing.left(m)
	m.schedule(m.now.Truncate(time.Millisecond))
	m.timing.entered(m)
}

// remove lets a job start nothing more.
func (m *machine) remove() {
	m.giveUpSlots()
	m.removed, m.always.restart = true, false
	m.giveUpRetry(errRemoved, false)
	for _, it := range m.queued {
		m.answer(it.reply, ErrUnknown)
	}
	m.queued, m.next = nil, time.Time{}
	for _, f := range m.flights {
		if !f.answered || m.timing.endless() {
			m.cancelRun(f, errRemoved)
		}
	}
	m.advance()
	if len(m.flights) == 0 {
		m.forget()
	}
}

func (m *machine) cancelAll(cause error) {
	for _, f := range m.flights {
		m.cancelRun(f, cause)
	}
}

// sameSchedule compares how two schedules are written. Schedules that are equal but written
// differently do no harm: the job's next slot is computed again and is the same.
func sameSchedule(a, b schedule.Schedule) bool { return reflect.DeepEqual(a, b) }
