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
//   - Runs continue as they were started. Only a run of "@always" ends, if its work or schedule has changed, or its job was removed.
//   - A job whose schedule, zone or jitter has changed has the slots of the new schedule from now on. Waiting slots of the old schedule are
//     missed.
//   - A new job also has its slots from now on. Earlier slots are not caught up.
//   - A removed job starts nothing more, and is forgotten when its last run has ended.
//
// Update returns [ErrNotLeader] if there is no term.
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
			if p.removed && !p.known { // the ledger's answer was dropped after the job was removed
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

// change replaces the machine's job by a changed job of the same name.
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

// reschedule changes the schedule of a job.
func (m *machine) reschedule(old Job) {
	changed := m.job
	m.job = old // the dropped slots belong to the old schedule
	m.giveUpSlots()
	m.job = changed
	m.timing.left(m)
	m.schedule(m.now.Truncate(time.Millisecond))
	m.timing.entered(m)
}

// remove stops a job from starting anything more.
func (m *machine) remove() {
	m.giveUpSlots()
	m.removed, m.always.restart = true, false
	m.giveUpRetry(errRemoved, false)
	for _, it := range m.queued {
		m.answer(it.reply, ErrUnknown)
	}
	m.queued, m.next = nil, time.Time{}
	for _, f := range m.active {
		if !f.answered || m.timing.endless() {
			m.cancelRun(f, errRemoved)
		}
	}
	m.advance()
	if len(m.active) == 0 {
		m.forget()
	}
}

func (m *machine) cancelAll(cause error) {
	for _, f := range m.active {
		m.cancelRun(f, cause)
	}
}

// sameSchedule compares how two schedules are written. Equal schedules that are written differently do no harm, because the job's next
// slot is then computed again and is the same.
func sameSchedule(a, b schedule.Schedule) bool { return reflect.DeepEqual(a, b) }
