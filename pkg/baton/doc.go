// Package baton has one of several processes lead, by a lock in Redis: for Go programs that elect
// a leader among themselves and need none of the rest of baton.
//
//	lock := baton.Lock{Key: "reports", Redis: baton.Redis{URL: "redis://127.0.0.1:6379/0"}}
//	err := baton.Lead(ctx, lock, func(ctx context.Context, term baton.Term) error {
//		return work(ctx, term.Epoch())
//	})
//
// [Lead] campaigns until ctx ends. While the lock is this process's, it runs the function, with a
// context that ends before the lease can have ended. So that holds:
//
//   - Of all processes that lead by the same key, at most one runs its function at a time, as long
//     as it returns when its context ends. One that does not is ended by the end of its lease: see
//     [Lock].OnOverrun.
//   - A leader that dies is followed after the rest of its lease, at most [Lock].TTL. One that ends,
//     steps down or returns is followed at once.
//   - Terms have epochs: each one's is higher than those of all before it, on any host. Write the
//     epoch along with a leader's data, and refuse a lower one: then the data is safe even from a
//     process that was stopped in the middle of a write. See [Term.Epoch].
//
// # The same lock as the daemon's
//
// The lock is the one of `baton run` and `baton lock`: the same keys, in the same form. Processes
// of all kinds exclude each other by it; `baton status`, `stepdown`, `pause` and `resume` with
// --lock-key KEY see and order library nodes as they do daemons. A library node that leads by
// the key of a daemon keeps that daemon's jobs from being run: give it a key of its own.
//
// # What it brings along
//
// No goroutine runs and nothing is kept once Lead has returned. There is no global state, nothing
// is logged without [Lock].Logger, and no environment variable is read. The package imports no
// database driver, no YAML and no HTTP.
//
// # Coming from elsewhere
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
// In the place of redsync's Mutex there are Lock.Lock, Lock.TryLock and Held.Unlock. Held.Context takes
// the place of Extend and Until.
//
// River elects its own maintenance leader, and runs jobs on every client. Other work that has to
// run on one host, such as a poller or a consumer, is a function for Lead.
package baton
