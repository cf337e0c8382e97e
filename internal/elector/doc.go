// Package elector elects one leader among the nodes that contend for a lock, runs
// the leader's work while it may be trusted, and hands over.
//
// # Model
//
// A [Lock] grants a lease to one owner at a time and lets it expire by the
// store's clock. Every term has an owner of its own, a fresh UUID, and an epoch
// that is higher than that of every earlier term. Nodes share nothing but the
// store. Processes may stop at any point and go on later, or never; requests and
// replies may be lost, late, or both; clocks may run a little differently and
// their wall time is not used at all.
//
// # States
//
//	           ctx ends (give back what may be ours)
//	     ┌──────────────────────────────────────────────► end
//	     │
//	┌────┴────┐  held, wait, refused,  ┌─────────┐
//	│ standby │ ◄───── unknown ─────── │ attempt │
//	│         │ ───── wait is over ──► │         │
//	└─────────┘                        └────┬────┘
//	     ▲                                  │ won, and trusted still
//	     │ released                         ▼
//	┌────┴────┐   work has returned    ┌─────────┐
//	│conclude │ ◄───────────────────── │ leading │ ◄─┐ renewed
//	└─────────┘                        └────┬────┘ ──┘
//	     ▲                                  │ ordered to step down, shutting down,
//	     │ work has returned                │ soft stop passed, lease lost
//	     │                             ┌────▼────┐
//	     └──────────────────────────── │stopping │ ◄─┐ renewed: the lease is kept
//	                                   └────┬────┘ ──┘ until the work has returned
//	                                        │ hard stop passed
//	                                        ▼
//	                                       Die
//
// # What fails, and what then
//
//   - The reply to an acquire is lost: the same owner asks again and is told that
//     it has won, under the same epoch. If we stop instead, the lock is given back.
//   - The reply to an acquire is late: trust counts from the sending; if too
//     little is left to start anything, the lock is given back.
//   - A renewal is unanswered: the window does not move; ask again at once. When
//     the soft stop passes, the work is told to stop; renewals go on, so that a
//     drain does not outlive its lease if the store comes back.
//   - A renewal is answered "not yours": the work is told to stop now.
//   - The hard stop passes and the work has not returned: the process dies. What it
//     leaves half done in a database is rolled back there, or fenced by the epoch.
//   - The process was stopped (SIGSTOP, suspend) beyond its hard stop: the first
//     thing that runs on waking is the guard, not the store's answer. The window is
//     closed, the work gets a quarter of a second to return, then Die. A paused VM
//     is the same if its boot clock goes on or is set on waking; if not, nothing
//     here can notice, and the epoch in the databases is what is left.
//   - The lease has expired: it is never renewed again, even if the store would.
//     The owner is deleted if it is still there, and the next term has a new one.
//   - The store is away: attempts go on for ever, paced from 100 ms to 5 s. Trouble
//     is told once, and once more when it is over.
//   - The release fails at once (a cut connection): it is tried once more. If it is
//     not answered, the lease runs out by itself.
//   - The observer hangs (its log is not read any more): the work is told to stop
//     first, and Die waits for nobody.
//   - A hint is lost, doubled or false: the poll is the truth.
//
// # What does not depend on this package
//
// That an epoch is never given twice, and that a deposed leader's transaction
// does not commit: those are the lock's and the databases' promises. Here it is
// only made unlikely that anybody needs them.
package elector
