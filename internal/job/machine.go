package job

import (
	"context"
	"hash/fnv"
	"slices"
	"sync/atomic"
	"time"

	"baton/internal/job/plan"
)

// machine is the state of one job in a term. It has no I/O: its methods take an event and return
// commands, which the loop carries out. It reads no clock, asks no ledger and has no goroutine,
// so its decisions depend on its state and the event only.
type machine struct {
	job Job
	*leadership
	moment             // of the current event
	commands []command // not carried out yet

	timing timing // the job's schedule: slots or always; the other is kept
	slots  slots
	always always

	next    time.Time // the job's next start; zero: none, or it waits for its run to end
	claimed time.Time // the last claimed slot, here or on another node
	waiting
	unrecorded
	phase

	flights   []*flight // runs that are being claimed or go on
	cancels   int       // how often an operator has cancelled all runs of the job
	cancelled error     // the cause of the last one
}

// waiting are the runs that are due and have not begun.
type waiting struct {
	queued   []*item
	retry    *retrial  // not due yet
	roomless time.Time // since then the first item waits for room; zero: it does not
}

// unrecorded are records that the ledger does not have yet. No slot is claimed before it does.
type unrecorded struct {
	known          bool      // the ledger has answered with the job's standing
	orphans        int       // lost runs on their way to the ledger, one of them to be rerun
	orphansUntil   time.Time // slots wait for orphans until then
	holding        int       // while above 0, misses are kept in held, so that they are reported in order
	held           []Missed  // reported when the pending claim is answered
	sending        int       // misses on their way to the ledger
	recordingSince time.Time
	refused        error // why the ledger refused the last slot or record; nil: it did not
}

// phase is the job's stage of life.
type phase struct {
	paused    bool // by the ledger, as far as this node knows
	removed   bool // no longer configured, but a run goes on
	forgotten bool // no longer configured, and no run is left
	closing   bool // the term is about to end: no more starts, the slots are the next leader's
}

// item is a run that is due and has not begun.
type item struct {
	run    Run       // slot, trigger and attempt; of a manual run also ID and requester
	after  time.Time // the slot before it; zero: unknown
	due    time.Time
	rerun  bool   // repeats a lost run: later slots do not replace it
	behind bool   // waits for the run that it repeats, whatever the job's Overlap
	serial bool   // part of a backlog
	why    Reason // why it waits; empty: it has not waited

	ctx   context.Context // the requester's, of a manual run
	reply chan<- error    // answers the requester
}

// retrial is a retrial that is not due yet.
type retrial struct {
	Retrial
	rerun bool
}

// backlog are slots that are run one after the other.
type backlog struct {
	plan.Stretch
	reason Reason // why the first of them waits
}

// flight is a run from its claim on, as the machine sees it.
type flight struct {
	item *item
	run  Run
	job  Job // as it was when the claim was granted

	giveUp   time.Time // end of the attempts to claim; zero: none
	void     bool      // only removes a retrial
	counted  bool      // counts for MaxConcurrent
	answered bool      // the claim is answered
	returned bool      // the work has returned; only its result is on its way to the ledger
	again    bool      // and the slot is to be retried
	cause    error     // of its cancellation; nil: not cancelled
	of       *machine  // the machine that first asked for the claim; an update may have replaced it
	cancels  int       // that machine's count at that time
	replies  []chan<- error

	asked     atomic.Bool // the ledger was asked for the claim
	execution *execution  // owned by the loop
}

// policy is the job's policy for slots.
func (j Job) policy() plan.Policy {
	return plan.Policy{Schedule: j.Schedule, CatchUp: j.CatchUp, StartingDeadline: j.StartingDeadline}
}

// again is the job's policy for slots whose runs have failed or were lost.
func (j Job) again() plan.Again { return plan.Again{Retry: j.Retry, OnLost: j.OnLost} }

// passed is the report of slots that are not run.
func (m *machine) passed(why Reason, g plan.Gap) Missed {
	return Missed{Job: m.job.Name, Reason: why, Count: g.Count, First: g.First, Slot: g.Slot, After: g.After}
}

// passedOver reports the slots after a time and up to the latest one as not run.
func (m *machine) passedOver(why Reason, from, latest time.Time) Missed {
	return m.passed(why, plan.PassedOver(m.job.Schedule, from, latest, time.Time{}))
}

func (m *machine) catchesAllUp() bool { return m.job.CatchUp == plan.CatchUpAll }

// due is the time at which a slot of the job is due.
func (m *machine) due(slot time.Time) time.Time { return slot.Add(m.job.Offset()) }

// nominal is the slot that would be due at a time.
func (m *machine) nominal(now time.Time) time.Time { return now.Add(-m.job.Offset()) }

// Offset is the job's fixed delay after its slots, below its jitter and the same on every node.
func (j Job) Offset() time.Duration {
	if j.Jitter < time.Millisecond {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(j.Name))
	return time.Duration(h.Sum64()%uint64(j.Jitter.Milliseconds())) * time.Millisecond
}

// busy reports whether a run of the job goes on or is being claimed.
func (m *machine) busy() bool { return m.goingOn() > 0 }

// goingOn counts the runs of the job that go on or are being claimed.
func (m *machine) goingOn() (n int) {
	for _, f := range m.flights {
		if !f.void {
			n++
		}
	}
	return n
}

// asking is the run whose claim of a slot or retrial is not answered yet.
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
func (m *machine) slotWaits() bool { return slices.ContainsFunc(m.queued, (*item).slotted) }

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

// schedule starts the job's slots from a time on.
func (m *machine) schedule(from time.Time) {
	m.slots.prev, m.slots.retryAfter = time.Time{}, time.Time{}
	m.timing = m.timingOf()
	m.timing.from(m, from)
}
