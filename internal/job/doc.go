// Package job starts jobs at their slots while this node leads, at most once over
// all nodes, and says what became of every slot.
//
// # Model
//
// A [Schedule] gives a job its slots: points of wall clock time that every node
// computes alike. A [Runner] runs the jobs of one term. The term reaches it as a
// context, which ends when nothing more may be started, and as a fencing epoch that
// it passes on. A [Ledger], shared by all nodes, keeps the last claimed slot of every
// job; whoever claims a later one has it, if he holds the lock.
//
// # Life of a slot
//
//	due, by the wall clock, later by the job's jitter
//	   │
//	   ├──── a run goes on ──────────────► by the job's Overlap: it is missed: overlap, or
//	   │                                   waits, or takes the other's place, or begins too
//	   ├──── no room (MaxConcurrent) ────► it waits; a later slot: missed: concurrency
//	   ├──── noticed too late ───────────► missed: late, or run if the job catches up
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
// A slot that passes while nobody leads is found at the start of the next term, from
// the last slot that was dealt with: by the job's CatchUp the latest one is run, or
// each in turn, or none; the others are missed: no_leader. Slots of the new term wait
// until that is known, since the first of them would bar all earlier ones. A job of
// which the ledger knows no slot catches nothing up: it is new, or the ledger has lost
// its data, and nothing tells the two apart. That is put on record: unknown.
//
// Every miss goes to the ledger, which then knows that the slot is dealt with, too. A
// slot is claimed only after the misses before it are on record, and a miss is recorded
// only when no earlier slot can be claimed any more. So wherever a term ends, the slots
// up to one are claimed or on record as missed, and those after it are the next term's.
//
// "@always" has no slots that could pass: the job is started when a term begins, and
// again whenever its run has ended, 1 s later at first and 30 s at most if it keeps
// failing. Every start is claimed like a slot.
//
// # What operators ask
//
// A manual run ([Runner.RunNow]) has the ID under which the ledger was asked for it.
// The claim takes the request away, and lets the slots alone: it happens once, whoever
// leads, and no slot counts as run because of it. It overlaps as slots do, unless it is
// forced, and is not tried again.
//
// [Runner.Cancel] ends runs, and what waits. A retrial that is cancelled is claimed and
// recorded as cancelled, so that no later term comes to it.
//
// A pause is the ledger's: it refuses every claim. An operator pauses a job, or a run
// does whose error is a [PauseError]. Slots of that time are missed, and nobody catches
// up on them. Only a run of "@always" is ended by a pause ([Runner.Paused]), since it
// would not end otherwise.
//
// [Runner.Update] replaces the jobs of the running term at one moment; it says what of
// them goes on.
//
// # What a crash leaves behind
//
//   - Before the claim has reached the ledger: an unclaimed slot. The next leader
//     catches up on it, or counts it as missed.
//   - After the claim, until the end is recorded: a run that is open, whether the work
//     has begun, is half done, or was done. The next leader records it as lost. That is
//     the price of at most once; a job with Rerun is tried again, at least once then.
//     Of several that were open at a time only the latest is. What makes work that is
//     half done harmless is its own affair: the transactions of a flush, the fence.
//   - While a retrial pends: the next leader goes on with it, unless a later slot has
//     passed.
//   - While slots wait, in a line or to be caught up: they are unclaimed, as above.
//   - Before a miss is recorded: the same.
//
// # Time
//
// The loop keeps no timer longer than ten seconds and compares wall clocks when it
// wakes, because timers follow another clock, which stops while a machine sleeps and
// does not move when the wall clock is set. If the wall clock goes forward, the latest
// of the slots that were jumped over stands for all of them, unless the job runs all. If
// it goes back, slots that were dealt with do not come again, and those that were not do.
//
// The ledger has a clock of its own. What lies more than a moment ahead of it is neither
// claimed nor missed: one of the clocks is wrong, and the job comes again to the slot,
// every ten seconds, until they agree.
//
// # What must hold
//
//   - Nothing is started once the term's context has ended.
//   - [Runner.Run] returns when, and not before, every run has returned. The lock is
//     held until then.
//   - A ledger that hangs holds up nobody but the slot that asks it.
package job
