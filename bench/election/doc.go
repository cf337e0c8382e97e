// Command election compares baton's election with what else is used from Go for
// electing one process by a Redis lock: same machine, same run, a private Redis
// for each trial, the same lease and the same pause between two looks at the lock.
//
// # What is compared
//
// Every contender is a process of this program (see the contenders' files) that
// campaigns for one lock, holds it, and keeps it alive in the way its
// documentation shows. While it may lead it acts: a loop asks every 5 ms whatever
// the library offers to ask without asking Redis, and writes down the time of
// CLOCK_BOOTTIME. So what is measured is the same for all: when a process acts.
// baton's contender is put together from the packages internal/elector and
// internal/redislock as the daemon does it; what an idle election costs is
// measured with the real `baton run`, too.
//
// # What is measured
//
//   - handover: SIGTERM to the leader, until another process acts
//   - failover: SIGKILL to the leader, until another process acts
//   - freeze: SIGSTOP for two leases, then SIGCONT: how long the old leader still
//     acts while the new one does
//   - recovery: Redis killed and started without its data, until exactly one
//     process acts, and for how long two did
//   - cost: one leader and ten standbys that are left alone
package main
