package job

import (
	"errors"
	"math/rand/v2"
	"time"
)

// The delays before an "@always" job is restarted after a failure. A flush is tried again within seconds after its cause has healed: its
// source may pause for as long.
const (
	againMin      = time.Second
	againMax      = 30 * time.Second
	againMaxFlush = 5 * time.Second
)

// always is the timing of an "@always" job: it starts when the term begins and restarts when its
// run has ended. It has one run at a time, and no slot that could be missed.
type always struct {
	wait    time.Duration // delay before the next start
	restart bool          // start at once when the run has ended
}

func (a *always) from(m *machine, at time.Time) { m.next = at }

func (a *always) due(m *machine) {
	m.next = time.Time{} // its end restarts it
	if !m.busy() {
		m.begin(&item{run: Run{Slot: a.slot(m), Trigger: TriggerSchedule, Attempt: 1}})
	}
}

// slot is the slot of a start: now, but after every claimed slot even if the clock was set
// back.
func (a *always) slot(m *machine) time.Time {
	return latest(m.now, m.claimed.Add(time.Millisecond)).Truncate(time.Millisecond)
}

func (a *always) endless() bool { return true }

func (a *always) overlap(*machine, *item) (Reason, verdict) { return ReasonOverlap, refused }

// ended schedules the restart: the delay grows with quick failures, and starts over after a
// long run.
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

// atOnce starts the job now.
func (a *always) atOnce(m *machine) { a.restart, a.wait, m.next = false, 0, m.now }

func (a *always) unnamed(m *machine, _ *flight, _ error) { a.ended(m, 0) }

func (a *always) refused(m *machine, f *flight, err error) {
	m.refused = err
	if outcomeUnknown(err) {
		m.disown(f, err)
	}
	if !f.item.manual() && errors.Is(err, ErrPaused) {
		m.paused = true
	}
}

// learn takes the last start from the standing; there are no missed slots.
func (a *always) learn(m *machine, st Standing, known, _ bool) {
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

// changed ends the run and starts another if the work has changed.
func (a *always) changed(m *machine, old Job) {
	switch {
	case m.job.Version == old.Version:
		return
	case !m.busy():
		a.wait = 0
		return
	}
	a.restart = true
	for _, f := range m.flights {
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
