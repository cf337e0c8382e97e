package job

import (
	"context"
	"hash/fnv"
	"slices"
	"sync/atomic"
	"time"

	"baton/internal/job/plan"
)

// machine is one job in a term: what of it is due, waits and goes on. It does nothing by
// itself: its methods take an event and give commands, which the loop carries out. It reads
// no clock, asks no ledger and has no goroutine, so that what it decides depends on its
// state and the event alone.
type machine struct {
	job Job
	*leadership
	moment             // of the event that is being dealt with
	commands []command // that it has given

	timing timing // of the job's schedule: slots or always, of which the other is kept
	slots  slots
	always always

	next    time.Time // the job's next start; zero: it has none, or waits for its run to end
	claimed time.Time // the last slot that is claimed, here or elsewhere
	waiting
	unrecorded
	phase

	flights   []*flight // runs whose claim is asked for, or that go on
	cancels   int       // how often an operator has cancelled all that there is of the job
	cancelled error     // the cause of the last one
}

// waiting is what is due and has not begun.
type waiting struct {
	line     []*item
	retry    *retrial  // is still to come
	roomless time.Time // the first waits for room, and is due since then; zero: it does not
}

// unrecorded is what the ledger does not know yet. No slot is claimed before it does.
type unrecorded struct {
	known          bool      // how the job stood when the term began: the ledger has answered
	orphans        int       // lost runs on their way to the ledger, of which one is to be run again
	orphansUntil   time.Time // slots wait for them no longer
	holding        int       // misses are kept in held for a moment, so that they are reported in order
	held           []Missed  // are reported when the claim that is asked for is answered
	sending        int       // misses on their way to the ledger
	recordingSince time.Time
	refused        error // why the ledger did not take the last slot or record; nil: it has
}

// phase is how far a job is from its end.
type phase struct {
	paused    bool // by the ledger, as far as this node knows
	removed   bool // it is no longer configured, and its last run still goes on
	forgotten bool // and nothing of it goes on any more
	closing   bool // the term is about to end: it starts nothing more, and its slots are the next leader's
}

// item is a run that is due and has not begun.
type item struct {
	run    Run       // its slot, trigger and attempt; of a manual one the ID and who asked
	after  time.Time // the slot before it; zero: not known
	due    time.Time
	rerun  bool   // of a run that was lost: later slots do not take its place
	behind bool   // one that is run again: it waits for its end, however the job overlaps
	serial bool   // of a backlog
	why    Reason // what it waits for; empty: it has not waited

	ctx   context.Context // of whoever asks for a manual run
	reply chan<- error    // to whom
}

// retrial is a retrial that is not due yet.
type retrial struct {
	Retrial
	rerun bool
}

// backlog are slots that are run one after the other.
type backlog struct {
	plan.Stretch
	reason Reason // what the first of them waits for
}

// flight is a run from the question for its claim on, as the machine sees it.
type flight struct {
	item *item
	run  Run
	job  Job // as it was when the claim was granted

	giveUp   time.Time // the claim is not asked for any longer; zero: never
	void     bool      // only takes a retrial away, so that it is not run
	counted  bool      // takes up room
	answered bool      // the claim is
	returned bool      // the work has, and only its end is on its way to the ledger
	again    bool      // and the slot is to be tried again
	cause    error     // by which it was cancelled; nil: it was not
	of       *machine  // when its claim was first asked for; the job may have been configured anew since
	cancels  int       // of that machine then
	replies  []chan<- error

	asked     atomic.Bool // the ledger was asked for the claim
	execution *execution  // the loop's
}

// policy is what the job wants done about its slots.
func (j Job) policy() plan.Policy {
	return plan.Policy{Schedule: j.Schedule, CatchUp: j.CatchUp, StartingDeadline: j.StartingDeadline}
}

// again is what the job wants done about slots whose runs have failed or were lost.
func (j Job) again() plan.Again { return plan.Again{Retry: j.Retry, OnLost: j.OnLost} }

// passed is what is reported and recorded of slots that are not run.
func (m *machine) passed(why Reason, g plan.Gap) Missed {
	return Missed{Job: m.job.Name, Reason: why, Count: g.Count, First: g.First, Slot: g.Slot, After: g.After}
}

// passedOver is the slots after a time and up to the latest one, as not run.
func (m *machine) passedOver(why Reason, from, latest time.Time) Missed {
	return m.passed(why, plan.PassedOver(m.job.Schedule, from, latest, time.Time{}))
}

func (m *machine) catchesAllUp() bool { return m.job.CatchUp == plan.CatchUpAll }

// due is when a slot of the job is due.
func (m *machine) due(slot time.Time) time.Time { return slot.Add(m.job.Offset()) }

// nominal is the slot that would be due at a time.
func (m *machine) nominal(now time.Time) time.Time { return now.Add(-m.job.Offset()) }

// Offset is by how much the job starts after its slots: always the same, below its
// jitter, on every node.
func (j Job) Offset() time.Duration {
	if j.Jitter < time.Millisecond {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(j.Name))
	return time.Duration(h.Sum64()%uint64(j.Jitter.Milliseconds())) * time.Millisecond
}

// busy reports whether a run of the job goes on, or asks for its claim.
func (m *machine) busy() bool { return m.goingOn() > 0 }

// goingOn counts the runs of the job that go on, or ask for their claim.
func (m *machine) goingOn() (n int) {
	for _, f := range m.flights {
		if !f.void {
			n++
		}
	}
	return n
}

// asking is the run that asks for a slot, or for a retrial, and has no answer yet.
func (m *machine) asking() *flight {
	for _, f := range m.flights {
		if !f.answered && !f.void && f.run.Trigger != TriggerManual {
			return f
		}
	}
	return nil
}

// inTurn reports whether a run of the backlog goes on.
func (m *machine) inTurn() bool {
	return slices.ContainsFunc(m.flights, func(f *flight) bool { return f.item.serial })
}

// slotWaits reports whether a slot waits in the line.
func (m *machine) slotWaits() bool { return slices.ContainsFunc(m.line, (*item).slotted) }

func (it *item) manual() bool { return it.run.Trigger == TriggerManual }

func (it *item) retried() bool { return it.run.Trigger == TriggerRetry }

// slotted reports whether it is the first attempt of a slot.
func (it *item) slotted() bool { return !it.manual() && !it.retried() }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// schedule has the slots of a job come from a time on.
func (m *machine) schedule(from time.Time) {
	m.slots.prev, m.slots.retryAfter = time.Time{}, time.Time{}
	m.timing = m.timingOf()
	m.timing.from(m, from)
}
