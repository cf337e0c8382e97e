package job

import (
	"errors"
	"math/rand/v2"
	"time"
)

// These constants limit the delay before an "@always" job is restarted after a failure. A flush has a shorter maximum: it must be retried
// within seconds after the cause of the failure is gone, because its source may pause until the flush succeeds.
const (
	againMin      = time.Second
	againMax      = 30 * time.Second
	againMaxFlush = 5 * time.Second
)

// always is the timing of an "@always" job. Such a job starts when the term begins, and restarts whenever its run has ended. It has one run
// at a time, and no slots that could be missed.
type always struct {
	wait    time.Duration // delay before the next start
	restart bool          // start at once when the run has ended
}

func (a *always) from(m *machine, at time.Time) { m.next = at }

func (a *always) due(m *machine) {
	m.next = time.Time{} // the end of the run restarts the job
	if !m.busy() {
		m.begin(&dueRun{run: Run{Slot: a.slot(m), Trigger: TriggerSchedule, Attempt: 1}})
	}
}

// slot returns the slot under which a start is claimed. It is the present time. If the clock was set back, it is a later time, because it
// must be after every claimed slot.
func (a *always) slot(m *machine) time.Time {
	return latest(m.now, m.claimed.Add(time.Millisecond)).Truncate(time.Millisecond)
}

func (a *always) endless() bool { return true }

func (a *always) overlap(*machine, *dueRun) (Reason, admission) { return ReasonOverlap, rejected }

// ended schedules the restart of the job. The delay doubles with each short run, and is short again after a run that took longer than
// againMax.
func (a *always) ended(m *machine, lasted time.Duration) {
	switch {
	case m.removed || m.closing || m.busy():
		return
	case a.restart:
		a.atOnce(m)
		return
	case lasted > againMax:
		a.wait = 0
	}
	longest := againMaxFlush
	if m.job.Spawns {
		longest = againMax
	}
	a.wait = min(max(2*a.wait, againMin), longest)
	m.next = m.now.Add(a.wait + rand.N(a.wait/5))
}

// atOnce makes the job due now.
func (a *always) atOnce(m *machine) { a.restart, a.wait, m.next = false, 0, m.now }

func (a *always) unnamed(m *machine, _ *activeRun, _ error) { a.ended(m, 0) }

func (a *always) refused(m *machine, f *activeRun, err error) {
	m.refused = err
	if outcomeUnknown(err) {
		m.disown(f, err)
	}
	if !f.item.manual() && errors.Is(err, ErrPaused) {
		m.paused = true
	}
}

// learn reads the last claimed slot from the job's state in the ledger, and records open runs of earlier terms as lost. An "@always" job
// has no missed slots.
func (a *always) learn(m *machine, st ResumeState, known, _ bool) {
	if known {
		m.claimed = latest(m.claimed, st.Last)
		m.closeOrphans(st.Open, true)
	}
}

func (a *always) clockBack(*machine) {}

func (a *always) left(m *machine) { m.cancelAll(errNotAlways) }

func (a *always) entered(m *machine) {
	if m.busy() {
		a.restart, m.next = true, time.Time{} // in its turn
	}
}

// changed restarts the job if an update has changed the job's work: it ends the present run, and a new run begins.
func (a *always) changed(m *machine, old Job) {
	switch {
	case m.job.Version == old.Version:
		return
	case !m.busy():
		a.wait = 0
		return
	}
	a.restart = true
	for _, f := range m.active {
		if f.answered { // an unanswered claim starts with the new work anyway
			m.cancelRun(f, errReloaded)
		}
	}
}

func (a *always) pauseChanged(m *machine, reason string) {
	switch {
	case reason != "":
		m.cancelAll(&PausedError{reason})
	case m.paused && !m.busy():
		a.atOnce(m)
	}
}
