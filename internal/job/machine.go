package job

import (
	"context"
	"hash/fnv"
	"slices"
	"sync/atomic"
	"time"

	"baton/internal/job/plan"
)

// machine is the state of one job in a term. It has no I/O: its methods take an event and return commands, which the loop executes. It
// reads no clock, asks no ledger and has no goroutine, so its decisions depend only on its state and the event.
type machine struct {
	job Job
	*leadership
	eventContext           // of the current event
	commands     []command // not executed yet

	timing timing // the job's schedule: slots or always; the other value is kept
	slots  slots
	always always

	next    time.Time // the job's next start; zero: no start, or the job waits for its run to end
	claimed time.Time // the last claimed slot, here or on another node
	pendingRuns
	unrecorded
	phase

	active    []*activeRun // runs that are being claimed or are in progress
	cancels   int          // how often an operator has cancelled all runs of the job
	cancelled error        // the cause of the last such cancellation
}

// pendingRuns are the runs that are due and have not begun.
type pendingRuns struct {
	queued   []*dueRun
	retry    *retrial  // not due yet
	roomless time.Time // the time since which the first item waits for room; zero: it does not wait
}

// unrecorded holds records that the ledger does not have yet. No slot is claimed before the ledger has them.
type unrecorded struct {
	known          bool      // the ledger has answered with the job's state
	orphans        int       // lost runs that are being recorded; one of them is to be rerun
	orphansUntil   time.Time // slots wait for orphans until this time
	holding        int       // while above 0, misses are kept in held, so that they are reported in order
	held           []Missed  // reported when the pending claim is answered
	sending        int       // misses that are being recorded
	recordingSince time.Time
	refused        error // why the ledger refused the last slot or record; nil: it did not refuse
}

// phase says whether the job is paused, removed or about to end.
type phase struct {
	paused    bool // the ledger has paused the job, as far as this node knows
	removed   bool // no longer configured, but a run is in progress
	forgotten bool // no longer configured, and no run is left
	closing   bool // the term is about to end: no more starts, and the slots belong to the next leader
}

// dueRun is a run that is due and has not begun.
type dueRun struct {
	run    Run       // slot, trigger and attempt; for a manual run also ID and requester
	after  time.Time // the slot before this slot; zero: unknown
	due    time.Time
	rerun  bool   // repeats a lost run, so later slots do not replace this run
	behind bool   // waits for the run that it repeats, whatever the job's Overlap is
	serial bool   // part of a backlog
	why    Reason // why the run waits; empty: it has not waited

	ctx   context.Context // the requester's context, for a manual run
	reply chan<- error    // answers the requester
}

// retrial is a further attempt of a slot. This attempt is not due yet.
type retrial struct {
	Retrial
	rerun bool
}

// backlog holds the slots that are run one after the other.
type backlog struct {
	plan.SlotRange
	reason Reason // why the first slot waits
}

// activeRun is the machine's view of a run, from the run's claim to its end.
type activeRun struct {
	item *dueRun
	run  Run
	job  Job // the job as it was when the claim was granted

	giveUp   time.Time // end of the attempts to claim; zero: no end
	void     bool      // the run only removes a retrial
	counted  bool      // the run counts for MaxConcurrent
	answered bool      // the claim is answered
	returned bool      // the work has returned; only its result is being recorded
	again    bool      // the work has returned, and the slot is to be retried
	cause    error     // the cause of the run's cancellation; nil: not cancelled
	of       *machine  // the machine that first requested the claim; an update may have replaced this machine
	cancels  int       // the value of cancels in that machine at that time
	replies  []chan<- error

	asked     atomic.Bool // the claim was requested from the ledger
	execution *execution  // owned by the loop
}

// policy returns the job's policy for slots.
func (j Job) policy() plan.Policy {
	return plan.Policy{Schedule: j.Schedule, CatchUp: j.CatchUp, StartingDeadline: j.StartingDeadline}
}

// rerunPolicy returns the job's policy for slots whose runs have failed or were lost.
func (j Job) rerunPolicy() plan.RerunPolicy {
	return plan.RerunPolicy{Retry: j.Retry, OnLost: j.OnLost}
}

// passed returns the report of slots that are not run.
func (m *machine) passed(why Reason, g plan.Gap) Missed {
	return Missed{Job: m.job.Name, Reason: why, Count: g.Count, First: g.First, Slot: g.Slot, After: g.After}
}

// passedOver returns a report that the slots after the time from, up to the slot in the argument latest, are not run.
func (m *machine) passedOver(why Reason, from, latest time.Time) Missed {
	return m.passed(why, plan.PassedOver(m.job.Schedule, from, latest, time.Time{}))
}

func (m *machine) catchesAllUp() bool { return m.job.CatchUp == plan.CatchUpAll }

// due returns when a slot of the job is due.
func (m *machine) due(slot time.Time) time.Time { return slot.Add(m.job.Offset()) }

// nominal returns the slot that is due at the time now. It is earlier than now by the job's Offset.
func (m *machine) nominal(now time.Time) time.Time { return now.Add(-m.job.Offset()) }

// Offset returns the job's fixed delay after its slots. The delay is below the job's jitter, and the same on every node.
func (j Job) Offset() time.Duration {
	if j.Jitter < time.Millisecond {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(j.Name))
	return time.Duration(h.Sum64()%uint64(j.Jitter.Milliseconds())) * time.Millisecond
}

// busy reports whether a run of the job is in progress or is being claimed.
func (m *machine) busy() bool { return m.goingOn() > 0 }

// goingOn counts the runs of the job that are in progress or are being claimed.
func (m *machine) goingOn() (n int) {
	for _, f := range m.active {
		if !f.void {
			n++
		}
	}
	return n
}

// asking returns the run that has requested a claim of a slot or a retrial and has no answer yet.
func (m *machine) asking() *activeRun {
	for _, f := range m.active {
		if !f.answered && !f.void && f.run.Trigger != TriggerManual {
			return f
		}
	}
	return nil
}

// inTurn reports whether a run of the backlog is in progress.
func (m *machine) inTurn() bool {
	return slices.ContainsFunc(m.active, func(f *activeRun) bool { return f.item.serial })
}

// slotWaits reports whether a slot is queued.
func (m *machine) slotWaits() bool { return slices.ContainsFunc(m.queued, (*dueRun).slotted) }

func (it *dueRun) manual() bool { return it.run.Trigger == TriggerManual }

func (it *dueRun) retried() bool { return it.run.Trigger == TriggerRetry }

// slotted reports whether the run is the first attempt of a slot.
func (it *dueRun) slotted() bool { return !it.manual() && !it.retried() }

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

// schedule sets the time from which on the job has slots.
func (m *machine) schedule(from time.Time) {
	m.slots.prev, m.slots.retryAfter = time.Time{}, time.Time{}
	m.timing = m.timingOf()
	m.timing.from(m, from)
}
