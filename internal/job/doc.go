// Package job starts jobs at their slots while this node leads, at most once across
// all nodes, and records the outcome of every slot.
//
// # Model
//
// A [schedule.Schedule] gives a job its slots: points of wall clock time that every node
// computes alike. A [Runner] runs the jobs of one term. The term reaches it as a
// context, which ends when nothing more may be started, and as a fencing epoch that
// it passes on. A [Ledger], shared by all nodes, keeps the last claimed slot of every
// job; a claim of a later slot succeeds if the claimer holds the lock.
//
// # Life of a slot
//
//	due, by the wall clock, later by the job's jitter
//	   │
//	   ├──── a run goes on ──────────────► by the job's Overlap: missed: overlap, or it
//	   │                                   waits, or replaces the other, or runs beside it
//	   ├──── no room (MaxConcurrent) ────► it waits; a later slot: missed: concurrency
//	   ├──── noticed too late ───────────► missed: late, or run if the job catches up
//	   ├──── too many runs begin ────────► it waits; a later slot: missed: late
//	   ▼
//	┌────────┐
//	│ claim  │ no answer (asked again until the next slot is due)
//	│        │ ──────────────────────────► missed: ledger
//	│        │ taken ────────────────────► nothing: it has been started
//	│        │ the job is paused ────────► missed: paused
//	│        │ ahead of the ledger ──────► it is still to come; the job comes again to it
//	│        │ not the leader ───────────► the term ends
//	└──┬─────┘
//	   │ granted
//	   ▼
//	┌────────┐ nil ──────────────────────► succeeded
//	│  run   │ error, panic ─────────────► failed     ─┐ tried again, if the job wants
//	│        │ error after the timeout ──► timed_out  ─┘ and no later slot is due before
//	└────────┘ error after the term, an operator's wish, or a later run ─► cancelled
//
// A slot that passes without a leader is found at the start of the next term, from
// the last settled slot: by the job's CatchUp the latest one is run, or
// each in turn, or none; the others are missed: no_leader if no leader gave a sign of life then, which
// the term knows ([Term].FreeSince), and otherwise unknown: there was a leader, and it has
// not recorded why they were not run. Slots of the new term wait until that is recorded, since
// the first of them would bar all earlier ones. A job
// without a slot in the ledger catches nothing up: it is new, or the ledger has lost
// its data, and the two cannot be distinguished. It is recorded as unknown, without a slot.
// A slot that was to be caught up and is given up is missed with the reason for which it waited.
//
// Every miss goes to the ledger, which then counts the slot as settled, too. A
// slot is claimed only after the misses before it are on record, and a miss is recorded
// only when no earlier slot can be claimed any more. So wherever a term ends, the slots
// up to one are claimed or on record as missed, and those after it are the next term's.
//
// "@always" has no slots that could pass: the job is started when a term begins, and
// again whenever its run has ended, 1 s later at first and 30 s at most if it keeps
// failing. Every start is claimed like a slot.
//
// # The short way
//
// Most runs of a job that is due every second have nothing to do ([Job].MayIdle). [Workload].Idle
// names those among the runs of one round of the loop, and [Ledger].ClaimIdle claims and records
// them together, each in one step: it is refused like any claim, is in the history, and was never
// open. Only first attempts of slots take this way; retrials and manual runs always begin.
//
//	due, and may have nothing to do
//	   │
//	   ├──── it has, or that is unknown ─► the claim, as above
//	   ▼
//	 claim and record in one step
//	   │
//	   ├──── granted ────────────────────► succeeded
//	   ├──── taken, paused, ahead, not the leader: as above
//	   └──── no answer ──────────────────► the claim, as above; ErrDone: it was granted, succeeded
//
// The check precedes the claim, because a flush may read another store than the ledger's, and in a
// Redis Cluster another slot. The run counts as started when the check began. Changes after that
// belong to the next slot, as they do when a run has read its input.
//
// # How it is built
//
// One loop (session.go, loop.go) owns the clock, the heap of jobs and everything that acts. Each
// job is a machine without I/O (machine.go): an event is a method that changes its state and
// gives commands (command.go), which the loop carries out when the method has returned. What
// differs between a job with slots (slots.go) and "@always" (always.go) is an interface (timing),
// and each keeps its own state. A run has a goroutine and a type of its own (execute.go): it
// claims, works and records, and hands the result to the loop as events; runs that may have
// nothing to do begin together (idle.go). What could not be
// recorded at once, and every miss, is in the outbox (outbox.go). The reporter (report.go,
// tally.go) writes the log and calls the hooks.
//
// Policies are pure functions of package plan: catch-up, overlap, retry, lost runs.
//
// A slot passes these: schedule (when it is due), plan (whether it is run), slots.go (how
// the job acts on it), queued.go (its wait for others), execute.go, outbox.go.
//
// # Orders of operators
//
// A manual run ([Runner.RunNow]) has the ID of its request in the ledger.
// The claim removes the request and leaves the slots alone: the run happens once across
// terms, and no slot counts as run because of it. It overlaps as slots do, unless it is
// forced, and is not retried.
//
// [Runner.Cancel] ends runs and drops waiting ones. A cancelled retrial is claimed and
// recorded as cancelled, so that no later term runs it.
//
// A pause is kept in the ledger, which then refuses every claim. An operator pauses a job, or a run
// whose error is a [PauseError]. Slots of that time are missed and never caught
// up on. Only a run of "@always" is ended by a pause ([Runner.Paused]), since it
// would not end otherwise.
//
// [Runner.EndFirst] ends the jobs that may take long to end, before a step-down,
// while the others go on. If the term ends meanwhile, all jobs end as usual.
//
// [Runner.Update] replaces the jobs of the running term atomically; its comment lists what
// continues.
//
// # What a crash leaves behind
//
//   - Before the claim has reached the ledger: an unclaimed slot. The next leader
//     catches up on it, or counts it as missed.
//   - After a check that found nothing to do, before the claim: the same. After that claim: a run
//     that succeeded; such a run is never open.
//   - After the claim, until the end is recorded: a run that is open, whether the work
//     has begun, is half done, or was done. The next leader records it as lost. That is
//     the price of at most once; a job with Rerun runs it again, so at least once.
//     Of several open runs only the latest is rerun. Half-done work must be made
//     harmless by the work itself: by the transactions of a flush, by the fence.
//   - While a retrial is pending: the next leader runs it, unless a later slot has
//     passed.
//   - While slots wait, in a line or to be caught up: they are unclaimed, as above.
//   - Before a miss is recorded: the same.
//
// # Time
//
// The loop keeps no timer longer than ten seconds and compares wall clocks when it
// wakes, because timers follow the monotonic clock, which stops while a machine sleeps and
// does not move when the wall clock is set. If the wall clock goes forward, the latest
// of the skipped slots replaces the others, unless the job runs all. If
// it goes back, settled slots do not become due again; the others do.
//
// The ledger has a clock of its own. A slot more than a moment ahead of it is neither
// claimed nor missed: one of the clocks is wrong, and the job tries the slot again
// every ten seconds until they agree.
//
// # What must hold
//
//   - Nothing is started once the term's context has ended.
//   - [Runner.Run] returns when the work of every run has returned, never before; the lock
//     is held until then. Results are recorded while the node leads, if the ledger
//     answers: recording does not count as work.
//   - A ledger that hangs delays only the slot that asks it.
//   - The lease has priority: few runs begin at a time, and none while [Config].Hold
//     says so. Waiting runs are unclaimed; those that wait until their next
//     slot or past their deadline are missed: late.
package job
