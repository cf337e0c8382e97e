// Package daemon connects all packages of baton, and only this package depends on all of them. [Run] runs the daemon. The other
// exported functions serve commands that run beside a daemon.
//
//	node         a running daemon: the parts that its candidacies share, and the configuration in force
//	candidacy    the node's part in one election: its elector, its runner and its ledger
//	runningTerm  one term of a candidacy; a reload may replace its jobs
//	observer     turns the events of an election into log lines, metrics, systemd's status and the lease file
//	subscriber   one subscription for the hints of all elections
//	balanceView  a candidacy as the balancer sees it
//
// Run starts the parts in this order: stores, jobs, listener, election.
//
// The invariants:
//
//   - The node contends only once for each lock. A candidacy that is being left ends before another candidacy for the same lock begins.
//   - A reload first does everything that can fail. Then each candidacy uses its new workload immediately. Runs in progress end
//     unchanged.
//   - Renewal goes on until the work of a term has returned. After an order to step down, flushes go on until the last command has ended.
//
// What fails, and what then:
//
//   - A part of a reload fails: the configuration in force stays, and the error says why.
//   - A candidacy ends because of an error: the daemon ends with that error.
//   - Work does not return by the hard stop: the process exits, and the command of systemd's ExecStopPost releases the lock.
//   - Redis is away: the elections keep asking, and the outage is reported once for all elections.
package daemon
