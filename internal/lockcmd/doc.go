// Package lockcmd is `baton lock`: it runs a command under locks, lists locks and breaks them.
//
//	lockRun      one call of [Run]: the command, and the locks to run it under
//	lockAttempt  one lock that is to be taken: an election of one term
//	wantedLock   a lock by its name; one that a process outside already holds is only checked
//	semaphore    several locks as one: the holder of one of them is in (elector.AnyOf)
//
// Each lock is an election, and its work is the campaign for the next lock. The work of the last one is the command. So an outer term
// ends only after the terms within it.
//
// The invariants:
//
//   - All locks are taken, or none: what was taken is given back if one is not had.
//   - Locks are taken in the order of their names, so that two processes never wait for each other.
//   - The command is dead before another client can have a lock: its warden has the deadline, and kills it even if this process hangs.
//   - The locks are renewed until the command has ended, and for the least time that was asked for.
//
// What fails, and what then:
//
//   - The wait is over, or a signal comes: the locks are given back, and the command does not run.
//   - A lock is lost while the next one is waited for: all are taken anew. One that is lost while the command runs ends the command.
//   - Redis is away: the run waits within its limit, and the error says that this was the reason.
//   - The command does not end in time: the process ends with an exit code of its own.
package lockcmd
