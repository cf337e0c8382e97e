package job

import (
	"context"
	"reflect"
	"time"
)

// Update replaces what the running term has to do, all at once. When it returns nothing
// of what was replaced starts any more, and nothing that was not replaced has noticed:
//
//   - Runs go on as they were begun, and end as they would have. Only those of
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
	s.limit = w.MaxConcurrent
	var fresh []string
	wanted := make(map[string]bool, len(w.Jobs))
	for _, j := range w.Jobs {
		wanted[j.Name] = true
		if e := s.entries[j.Name]; e != nil {
			if e.removed && !e.known { // what the ledger told of it meanwhile went unheard
				fresh = append(fresh, j.Name)
			}
			s.change(e, j)
			continue
		}
		s.add(j, s.nowMillis())
		fresh = append(fresh, j.Name)
	}
	for name, e := range s.entries {
		if !wanted[name] && !e.removed {
			s.remove(e)
		}
	}
	s.asking.Go(func() { s.askStandings(fresh, true) })
	s.admit()
}

// change has a job be another one of the same name.
func (s *session) change(e *entry, j Job) {
	old, back := e.job, e.removed
	e.job, e.removed = j, false
	if j.Retry.Limit == 0 {
		s.giveUpRetry(e, errNoRetry, j.Rerun)
	}
	switch {
	case back || old.Jitter != j.Jitter || !sameSchedule(old.Schedule, j.Schedule):
		s.reschedule(e, old)
	case e.always() && old.Version != j.Version:
		s.startAnew(e)
	case j.CatchUp != CatchUpAll && !e.backlog.empty():
		s.giveUpSlots(e)
	}
	s.advance(e)
}

// reschedule has the slots of a job come by another schedule.
func (s *session) reschedule(e *entry, old Job) {
	changed := e.job
	e.job = old // for the slots that are given up
	s.giveUpSlots(e)
	e.job = changed
	if IsAlways(old.Schedule) {
		e.cancelAll(errNotAlways)
	}
	e.schedule(s.nowMillis())
	if e.known && !e.always() { // else a later term would look for slots of this schedule in the time of the other
		s.miss(e, Missed{Job: e.job.Name, Reason: reasonNone, First: e.base, Slot: e.base})
	}
	if e.always() && e.busy() {
		e.anew, e.next = true, time.Time{} // in its turn
	}
}

// startAnew ends the run of a job that runs all the time, for another one.
func (s *session) startAnew(e *entry) {
	if !e.busy() {
		e.wait = 0
		return
	}
	e.anew = true
	for _, f := range e.flights {
		if f.answered { // another is as new as can be
			f.cancel(errReloaded)
		}
	}
}

// remove has a job start nothing more.
func (s *session) remove(e *entry) {
	s.giveUpSlots(e)
	e.removed, e.anew = true, false
	s.giveUpRetry(e, errRemoved, false)
	for _, it := range e.line {
		answer(it.reply, ErrUnknown)
	}
	e.line, e.next = nil, time.Time{}
	for _, f := range e.flights {
		if !f.answered || e.always() {
			f.cancel(errRemoved)
		}
	}
	s.advance(e)
	if len(e.flights) == 0 {
		s.forgetEntry(e)
	}
}

func (e *entry) cancelAll(cause error) {
	for _, f := range e.flights {
		f.cancel(cause)
	}
}

// sameSchedule reports whether two schedules are the same as far as can be seen. If
// they only look different, the job's next slot is found again, and is the same.
func sameSchedule(a, b Schedule) bool { return reflect.DeepEqual(a, b) }
