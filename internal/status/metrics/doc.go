// Package metrics serves the node's metrics from memory only, so that a scrape never waits for a server.
//
//	Metrics       all metrics of the node, in their own registry
//	Election      the metrics of one election
//	knownJob      the last state of a job that this node has read, as leader or as standby
//	counterVec    counters by labels; most stay zero, so it needs far less memory than the library's counters
//	Surroundings  a node's view of an election: the nodes, their drift, a pause, the offset of Redis' clock
//
// The invariants:
//
//   - Every series that the configuration can produce exists from the start with the value zero, so that rates and alerts see the first
//     event.
//   - The methods accept plain values and never block. They are safe for concurrent use.
//   - If a reload removes a job, the gauges of the job are removed, and its counters stay. The job's last run may still report
//     values, but these create no new series.
//   - Status is never greener than the truth. The lateness in a state that is more than a minute old is computed for the current time, so
//     it grows. A lag that cannot be counted has no series, because zero would mean that no change waits.
//
// The failures:
//
//   - If the servers do not answer, the gauges that depend on time grow, and the others keep the last value that was read.
//   - If another node leads, this node still shows the state that it has read, because there may be no other node to report it.
//   - If clients hang up during scrapes, the log contains one line per minute, with a count.
package metrics
