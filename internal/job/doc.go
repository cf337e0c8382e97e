// Package job starts jobs at their slots while this node leads, at most once over
// all nodes, and says what became of every slot.
//
// # Model
//
// A [schedule.Schedule] gives a job its slots: points of wall clock time that every node
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
// the last slot that was dealt with: by the job's CatchUp the latest one is run, or
// each in turn, or none; the others are missed: no_leader if the lock was free then, which
// the term knows ([Term].FreeSince), and otherwise unknown: there was a leader, and it has
// not recorded why they were not run. Slots of the new term wait until that is known, since
// the first of them would bar all earlier ones. A job of
// which the ledger knows no slot catches nothing up: it is new, or the ledger has lost
// its data, and nothing distinguishes the two. That is put on record: unknown, without a slot.
// What is caught up on and given up after all is missed for what it waited for.
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
// # How it is built
//
// One loop (session.go, loop.go) owns the clock, the heap of jobs and everything that acts. Each
// job is a machine without I/O (machine.go): an event is a method that changes its state and
// gives commands (command.go), which the loop carries out when the method has returned. What
// differs between a job with slots (slots.go) and "@always" (always.go) is behind one interface,
// and each keeps its own state. A run has a goroutine and a type of its own (execute.go): it
// claims, works and records, and hands the result to the loop as events. What could not be
// recorded at once, and every miss, is in the outbox (outbox.go). The reporter (report.go,
// tally.go) writes the log and calls the hooks.
//
// Policies are pure functions of package plan: catch-up, overlap, retry, lost runs.
//
// A slot passes these: schedule (when it is due), plan (whether it is run), slots.go (what
// the job does about it), line.go (what it waits for), execute.go, outbox.go.
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
// does whose error is a [PauseError]. Slots of that time are missed, and never caught
// up on. Only a run of "@always" is ended by a pause ([Runner.Paused]), since it
// would not end otherwise.
//
// [Runner.EndFirst] ends, for a term that is to end by order, the jobs that may take long
// over it, while the others go on. If the term ends meanwhile, that ends all as ever.
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
//   - [Runner.Run] returns when the work of every run has returned, never before; the lock
//     is held until then. How runs ended is recorded while the node leads, if the ledger
//     answers: that counts as no work.
//   - A ledger that hangs holds up only the slot that asks it.
//   - The lease goes first: few runs begin at a time, and none while the runner is to hold
//     back ([Config].Hold). Those that wait are unclaimed, and, if they wait until their next
//     slot or past their deadline, missed: late.
package job
