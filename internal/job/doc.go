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
//	due, by the wall clock
//	   │
//	   ├──── the job still runs ─────────► missed: overlap
//	   ├──── noticed too late ───────────► missed: late
//	   ▼
//	┌────────┐
//	│ claim  │ no answer (asked again until the next slot is due)
//	│        │ ──────────────────────────► missed: ledger
//	│        │ taken ────────────────────► nothing: it has been started
//	│        │ the job is paused ────────► missed: paused
//	│        │ not the leader ───────────► the term ends
//	└──┬─────┘
//	   │ granted
//	   ▼
//	┌────────┐ nil ──────────────────────► succeeded
//	│  run   │ error, panic ─────────────► failed
//	│        │ error after the timeout ──► timed_out
//	└────────┘ error after the term ─────► cancelled
//
// A slot that passes while nobody leads is found at the start of the next term, from
// the last claimed slot: the latest one is run if the job catches up, the others are
// missed: no_leader. A job of which the ledger knows no slot catches nothing up: it is
// new, or the ledger has lost its data, and nothing tells the two apart.
//
// "@always" has no slots that could pass: the job is started when a term begins, and
// again whenever its run has ended, 1 s later at first and 30 s at most if it keeps
// failing. Every start is claimed like a slot.
//
// # What operators ask
//
// A manual run ([Runner.RunNow]) has the ID under which the ledger was asked for it.
// The claim takes the request away, and lets the slots alone: it happens once, whoever
// leads, and no slot counts as run because of it.
//
// A pause is the ledger's: it refuses every claim. An operator pauses a job, or a run
// does whose error is a [PauseError]. Slots of that time are missed, and nobody catches
// up on them. Only a run of "@always" is ended by a pause ([Runner.Paused]), since it
// would not end otherwise.
//
// # What a crash leaves behind
//
//   - Before the claim has reached the ledger: an unclaimed slot. The next leader
//     catches up on it, or counts it as missed.
//   - After the claim, before the work has begun: a claimed slot that is never run.
//     That is the price of at most once. A flush does not mind: the next slot moves
//     what is there. The history shows the run as running, on a node and in an epoch
//     that no longer lead.
//   - In the middle of the work: the same, with work half done. What makes that
//     harmless is the work's own affair: the transactions of a flush, the fence.
//   - After the work, before its end is recorded: the work is done, and the history
//     does not know.
//
// # Time
//
// The loop keeps no timer longer than ten seconds and compares wall clocks when it
// wakes, because timers follow another clock, which stops while a machine sleeps and
// does not move when the wall clock is set. If the wall clock goes forward, the latest
// of the slots that were jumped over stands for all of them. If it goes back, slots
// that were dealt with do not come again: jobs wait until the clock has caught up.
//
// # What must hold
//
//   - Nothing is started once the term's context has ended.
//   - [Runner.Run] returns when, and not before, every run has returned. The lock is
//     held until then.
//   - A ledger that hangs holds up nobody but the slot that asks it.
package job
