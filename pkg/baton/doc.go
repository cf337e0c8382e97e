// Package baton elects a leader among several processes, by a lock in Redis. It is for Go programs that elect a leader among themselves and
// need no other part of baton.
//
//	lock := baton.Lock{Key: "reports", Redis: baton.Redis{URL: "redis://127.0.0.1:6379/0"}}
//	err := baton.Lead(ctx, lock, func(ctx context.Context, term baton.Term) error {
//		return work(ctx, term.Epoch())
//	})
//
// [Lead] campaigns until ctx ends. While this process has the lock, Lead runs the function with a context that ends before the lease can
// have ended. This has the following effects:
//
//   - Of all processes that use the same key, at most one runs its function at a time, provided that each function returns when its context
//     ends. If a function does not return, its process is ended before the lease can have ended, see [Lock].OnOverrun.
//   - If a leader dies, the next leader follows after the rest of the lease, which is at most [Lock].TTL. If a leader shuts down or steps
//     down, or if its function returns, the next leader follows immediately.
//   - Each term has an epoch that is higher than the epochs of all earlier terms, on any host. Write the epoch together with the leader's
//     data, and reject a lower epoch. This protects the data even from a process that was stopped in the middle of a write. See
//     [Term.Epoch].
//
// # The same lock as the daemon's
//
// The lock is the same as the lock of `baton run` and `baton lock`: the keys and their format are equal. So all these processes exclude
// each other, and `baton status`, `stepdown`, `pause` and `resume` with --lock-key KEY treat library nodes like daemons. If a library node
// leads with the key of a daemon, the jobs of that daemon do not run. Therefore use a separate key.
//
// # Side effects
//
// After Lead has returned, no goroutine runs and no state is kept. There is no global state, nothing is logged without [Lock].Logger, and
// no environment variable is read. The package imports no database driver, no YAML and no HTTP.
//
// # Migration from other libraries
//
//	client-go leaderelection            here
//	LeaseDuration                       Lock.TTL
//	RenewDeadline                       Lock.TTL less a margin: the context ends by itself
//	RetryPeriod                         Lock.Heartbeat, Lock.Poll
//	OnStartedLeading(ctx)               the function
//	OnStoppedLeading()                  after the function has returned; EventEnded
//	OnNewLeader(identity)               OnChange: EventFollowing, EventLeading
//	IsLeader(), GetLeader()             Elector.IsLeader, Elector.Leader
//	ReleaseOnCancel                     always
//	LeaderTransitions, as a fence       Term.Epoch
//
// Lock.Lock, Lock.TryLock and Held.Unlock replace the methods of redsync's Mutex. Held.Context replaces Extend and Until.
//
// River elects a leader only for its own maintenance, and runs jobs on every client. Other work that must run on only one host, such as a
// poller or a consumer, can be a function for Lead.
package baton
