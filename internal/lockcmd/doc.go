// Package lockcmd implements `baton lock`, which runs a command under locks, lists locks and breaks them.
//
//	lockRun      one call of [Run]: the command, and the locks under which it runs
//	lockAttempt  one lock to take: an election of one term
//	wantedLock   a lock by its name; a lock that an outer process already holds is only checked
//	semaphore    several locks as one: the holder of any of them holds the semaphore (elector.AnyOf)
//
// Each lock is an election, and the work of each election is the campaign for the next lock. The work of the last election is the
// command. So an outer term ends only after the terms within it.
//
// The invariants:
//
//   - All locks are taken, or none: if one lock cannot be taken, the other locks are given back.
//   - Locks are taken in the order of their names, so that two processes never wait for each other.
//   - The command is dead before another client can have a lock: its warden knows the deadline, and kills the command even if this
//     process hangs.
//   - The locks are renewed until the command has ended, and for at least the time of --at-least.
//
// What fails, and what then:
//
//   - The wait is over, or a signal comes: the locks are given back, and the command does not run.
//   - A lock is lost while the command waits for the next lock: all locks are taken again. If a lock is lost while the command runs,
//     the command is ended.
//   - Redis is away: the run waits within its limit, and the error names Redis as the reason.
//   - The command does not end in time: the process ends with an exit code of its own.
package lockcmd
