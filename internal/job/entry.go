package job

import (
	"context"
	"hash/fnv"
	"slices"
	"time"
)

// entry is a job in a session. The loop owns it, but for the part that says so.
type entry struct {
	job   Job
	index int       // in the queue; -1: not there
	at    time.Time // when the loop looks at it next: its place in the queue

	prev, next time.Time // the slot that came due last, if it is known, and the one to come; zero: none
	base       time.Time // slots up to here are none of this term's schedule
	dealt      time.Time // slots up to here are claimed, or told as missed
	claimed    time.Time // the last slot that is claimed, here or elsewhere
	tried      bool      // a slot of this term was begun, or waits: earlier ones can no longer be claimed
	ahead      time.Time // until then the next slot, which the ledger's clock has not come to, is not asked for again

	known   bool      // how the job stood when the term began: no slot goes ahead of that
	mending int       // lost runs on their way to the ledger, of which one is to be run again
	mendBy  time.Time // until then no slot goes ahead of that

	flights []*flight // runs whose claim is asked for, or that go on
	line    []*item   // what is due, and waits
	backlog backlog   // slots that are run one after the other, behind the line
	retry   *retrial  // is still to come

	holding int      // misses are kept in held for a moment, so that they are told in order
	held    []Missed // are told when the claim that is asked for is answered
	letters int      // misses on their way to the ledger: no slot goes ahead of them
	oldest  time.Time

	wait    time.Duration // before a job that runs all the time is started again
	paused  bool          // that job is, as far as this node has been told
	anew    bool          // that job is started at once when its run has ended
	removed bool          // the job is no longer configured, and its last run still goes on

	misses  quiet   // of misses, to the log
	trouble trouble // has a lock of its own
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

// backlog is a stretch of slots, after one time and up to another.
type backlog struct {
	after, until time.Time
	reason       Reason // why they were not run at their time
}

// flight is a run in a goroutine of its own, from the question for its claim on.
type flight struct {
	entry *entry
	item  *item
	run   Run
	job   Job // as it was when the claim was granted

	ctx    context.Context
	cancel context.CancelCauseFunc

	giveUp   time.Time // the claim is not asked for any longer; zero: never
	void     bool      // only takes a retrial away, so that nobody runs it
	counted  bool      // takes up room
	answered bool      // the claim is
	replies  []chan<- error
}

func (e *entry) always() bool { return IsAlways(e.job.Schedule) }

func (e *entry) catchesAllUp() bool { return e.job.CatchUp == CatchUpAll && !e.always() }

// due is when a slot of the job is due.
func (e *entry) due(slot time.Time) time.Time { return slot.Add(e.job.Offset()) }

// nominal is the slot that would be due at a time.
func (e *entry) nominal(now time.Time) time.Time { return now.Add(-e.job.Offset()) }

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
func (e *entry) busy() bool {
	return slices.ContainsFunc(e.flights, func(f *flight) bool { return !f.void })
}

// asking is the run that asks for a slot, or for a retrial, and has no answer yet.
func (e *entry) asking() *flight {
	for _, f := range e.flights {
		if !f.answered && !f.void && f.run.Trigger != TriggerManual {
			return f
		}
	}
	return nil
}

// inTurn reports whether a run of the backlog goes on.
func (e *entry) inTurn() bool {
	return slices.ContainsFunc(e.flights, func(f *flight) bool { return f.item.serial })
}

// slotWaits reports whether a slot waits in the line.
func (e *entry) slotWaits() bool { return slices.ContainsFunc(e.line, (*item).slotted) }

func (it *item) manual() bool { return it.run.Trigger == TriggerManual }

func (it *item) retried() bool { return it.run.Trigger == TriggerRetry }

// slotted reports whether it is the first attempt of a slot.
func (it *item) slotted() bool { return !it.manual() && !it.retried() }

func (b backlog) empty() bool { return !b.after.Before(b.until) }

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
