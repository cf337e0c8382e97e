// Package job starts jobs at their slots while this node leads, at most once across
// all nodes, and records the outcome of every slot.
//
// # Model
//
// A [schedule.Schedule] gives a job its slots: points of wall clock time that are the same on every node. A [Runner] runs the jobs of
// one term. The runner receives the term as a context, which ends when nothing more may be started, and as a fencing epoch that the
// runner passes on. A [Ledger], shared by all nodes, keeps the last claimed slot of every job; a claim of a later slot succeeds if the
// claimer holds the lock.
//
// # Life of a slot
//
//	due, by the wall clock, later by the job's jitter
//	   │
//	   ├──── a run goes on ──────────────► by the job's Overlap: missed: overlap, or the slot
//	   │                                   waits, or replaces the run, or runs beside the run
//	   ├──── no room (MaxConcurrent) ────► it waits; a later slot: missed: concurrency
//	   ├──── noticed too late ───────────► missed: late, or run if the job catches up
//	   ├──── too many runs begin ────────► it waits; a later slot: missed: late
//	   ▼
//	┌────────┐
//	│ claim  │ no answer (asked again until the next slot is due)
//	│        │ ──────────────────────────► missed: ledger
//	│        │ taken ────────────────────► nothing: the slot has already been started
//	│        │ the job is paused ────────► missed: paused
//	│        │ ahead of the ledger ──────► the slot is still to come; the job tries it again later
//	│        │ not the leader ───────────► the term ends
//	└──┬─────┘
//	   │ granted
//	   ▼
//	┌────────┐ nil ──────────────────────► succeeded
//	│  run   │ error, panic ─────────────► failed     ─┐ retried, if the job's Retry says so
//	│        │ error after the timeout ──► timed_out  ─┘ and no later slot is due before
//	└────────┘ error after the term, an operator's wish, or a later run ─► cancelled
//
// The next term finds the slots that passed without a leader, beginning after the last settled slot. Depending on the job's CatchUp, it
// runs the latest of these slots, or each slot in turn, or none. The other slots are missed: no_leader if no leader gave a sign of life at
// that time ([Term].FreeSince). They are missed as unknown if there was a leader that has not recorded why it did not run these slots.
// Slots of the new term wait until these misses are recorded, because the first claimed slot would bar all earlier slots. A job without a
// slot in the ledger catches no slots up: the job is new, or the ledger has lost its data, and the runner cannot distinguish the two cases.
// This is recorded as unknown, without a slot. If a slot that was to be caught up is given up, the reason of the miss is the reason why the
// slot waited.
//
// Every miss is recorded in the ledger, which then also counts the slot as settled. A slot is claimed only after the misses before it
// are recorded, and a miss is recorded only when no earlier slot can be claimed any more. So at whatever point a term ends, all slots
// up to some slot are claimed or recorded as missed, and all later slots belong to the next term.
//
// "@always" has no slots that could pass: the job is started when a term begins, and started again whenever its run has ended. The
// delay is 1 s at first, and at most 30 s if the job keeps failing. Every start is claimed like a slot.
//
// # The short way
//
// Most runs of a job that is due every second have nothing to do ([Job].MayIdle). [Workload].Idle finds these runs among the runs of
// one round of the loop, and [Ledger].ClaimIdle claims and records these runs together, each in one step. Such a claim may be refused
// like any other claim. The run is in the history, but was never open. Only first attempts of slots use this way; retrials and manual
// runs always begin.
//
//	due, and may have nothing to do
//	   │
//	   ├──── it has work, or unknown ────► the claim, as above
//	   ▼
//	 claim and record in one step
//	   │
//	   ├──── granted ────────────────────► succeeded
//	   ├──── taken, paused, ahead, not the leader: as above
//	   └──── no answer ──────────────────► the claim, as above; ErrDone: the run was granted and succeeded
//
// The check for work precedes the claim, because a flush may read another store than the ledger's store, and in a Redis Cluster another
// hash slot. The run counts as started when the check began. Later changes belong to the next slot, like changes after a run has read its
// input.
//
// # How it is built
//
// One loop (session.go, loop.go) owns the clock, the heap of jobs and everything that acts. Each job is a machine without I/O
// (machine.go): an event is a method that changes the machine's state and returns commands (command.go), which the loop executes when
// the method has returned. The differences between a job with slots (slots.go) and "@always" (always.go) are behind an interface
// (timing), and each implementation keeps its own state. A run has its own goroutine and its own type (execute.go): it makes the claim,
// does the work, records the result, and passes the answers to the loop as events. Runs that may have nothing to do begin together
// (idle.go). Results that could not be recorded at once, and all misses, wait in the outbox (outbox.go). The reporter (report.go,
// grouped_log.go) writes the log and calls the hooks.
//
// The policies for catch-up, overlap, retry and lost runs are pure functions of package plan.
//
// A slot passes through these parts: schedule (when the slot is due), plan (whether the slot is run), slots.go (how the job handles the
// decision), queued.go (how the slot waits for other runs), execute.go and outbox.go.
//
// # Orders of operators
//
// A manual run ([Runner.RunNow]) has the ID of its request in the ledger. The claim removes the request and does not change the slots:
// the run happens once across terms, and no slot counts as run because of this run. The job's Overlap applies to the run as to slots,
// unless the run is forced. A manual run is not retried.
//
// [Runner.Cancel] ends runs and drops waiting runs. A cancelled retrial is claimed and recorded as cancelled, so that no later term
// runs it.
//
// A pause is kept in the ledger, which then refuses every claim. An operator pauses a job, or a run whose error is a [PauseError] does.
// Slots that pass during a pause are missed and never caught up. Only a run of "@always" is ended by a pause ([Runner.Paused]), because
// such a run would not end otherwise.
//
// [Runner.EndFirst] ends the jobs that may take long to end before a step-down, while the other jobs go on. If the term ends during
// this time, all jobs end as usual.
//
// [Runner.Update] replaces the jobs of the running term atomically. Its comment lists which runs and slots continue.
//
// # What a crash leaves behind
//
//   - Before the claim has reached the ledger, the crash leaves an unclaimed slot. The next
//     leader catches up on this slot, or counts it as missed.
//   - After a check that found nothing to do, but before the claim, the crash also leaves an
//     unclaimed slot. After that claim, it leaves a run that succeeded, because such a run is
//     never open.
//   - After the claim, until the end is recorded, the crash leaves an open run, even if the work
//     has not begun, is half done, or is done. The next leader records this run as lost. Lost
//     runs are the price of at most once. A job with Rerun runs a lost run again, so it runs at
//     least once. Of several open runs only the latest is rerun. Half-done work must be made
//     harmless by the work itself: by the transactions of a flush, by the fence.
//   - While a retrial is pending, the crash leaves the retrial. The next leader runs it, unless a
//     later slot has passed.
//   - While slots wait in a queue or to be caught up, the crash leaves unclaimed slots, as above.
//   - Before a miss is recorded, the crash also leaves unclaimed slots.
//
// # Time
//
// The loop keeps no timer longer than ten seconds and compares wall clocks when it wakes. The reason is that timers follow the
// monotonic clock, which stops while a machine sleeps and does not move when the wall clock is set. If the wall clock is set forward,
// the latest of the skipped slots replaces the other skipped slots, unless the job runs all slots. If the wall clock is set back,
// settled slots do not become due again, but the other slots do.
//
// The ledger has its own clock. A slot that is more than a moment ahead of the ledger's clock is neither claimed nor missed. In this
// case one of the clocks is wrong, and the job tries the slot again every ten seconds until the clocks agree.
//
// # What must hold
//
//   - Nothing is started after the term's context has ended.
//   - [Runner.Run] returns when the work of every run has returned, never before; the lock
//     is held until then. Results are recorded while the node leads, if the ledger
//     answers: recording does not count as work.
//   - A ledger that hangs delays only the slot whose claim waits for the ledger.
//   - The lease has priority: only a few runs begin at a time, and no run begins while [Config].Hold returns true. Waiting runs are
//     unclaimed. A run that waits until the job's next slot, or past its starting deadline, is missed with the reason late.
package job
