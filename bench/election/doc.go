// Command election compares baton's election with other ways from Go to elect one process by a Redis lock: same machine, same run, a
// private Redis for each trial, the same lease and the same pause between two looks at the lock.
//
// # The contenders
//
// Every contender is a process of this program (see the contenders' files) that campaigns for one lock, holds it, and keeps it alive in
// the way its documentation shows. While it may lead it acts: a loop asks every 5 ms each question that the library answers without
// Redis, and writes down the time of CLOCK_BOOTTIME. So one event is measured for all: the time when a process acts. baton's contender is
// put together from the packages internal/elector and internal/redislock as the daemon does it; the cost of an idle election is measured
// with the real `baton run`, too.
//
// # The measurements
//
//   - handover: SIGTERM to the leader, until another process acts
//   - failover: SIGKILL to the leader, until another process acts
//   - freeze: SIGSTOP for two leases, then SIGCONT: how long the old leader still
//     acts while the new one does
//   - recovery: Redis killed and started without its data, until exactly one
//     process acts, and for how long two did
//   - cost: one leader and ten undisturbed standbys
package main
