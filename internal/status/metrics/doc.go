// Package metrics serves the node's metrics from memory only: a scrape never waits for a server.
//
//	Metrics       all metrics of the node, on a registry of their own
//	Election      those of one election
//	knownJob      the last state of a job that this node has read, as leader or not
//	counterVec    counters by labels, in far less memory than those of the library: most of them stay zero
//	Surroundings  a node's view of an election: its nodes, their drift, a pause, the offset of the clock
//
// The invariants:
//
//   - Every series that the configuration can produce exists from the start, at zero: rates and alerts see the first event.
//   - The methods take plain values and never block. They are safe for concurrent use.
//   - A job that a reload has removed loses its series. Its last run may still report, and makes no new ones.
//   - Status is never greener than the truth: a state that is more than a minute old is judged by the present time, so lateness grows. A
//     lag that cannot be counted has no series, since zero would mean that no change waits.
//
// What fails, and what then:
//
//   - The servers do not answer: gauges that change with time grow, and the others keep the last value that was read.
//   - Another node leads: this node shows what it has read, since there may be no other to report it.
//   - A client hangs up within a scrape: the log has one line a minute, with a count.
package metrics
