// Package capture reads the changes in a Redis without help from the application. The replication stream names the changed keys. The
// package then reads their present values. A change is only a hint, so receiving it twice, or receiving one too many, is harmless.
//
//	follower      one for each store: it knows the masters, and has a stream reader for each
//	streamReader  follows one master, for all feeds
//	feed          the pending keys of one job; it exists from the first Stage until Release, also between runs
//	mark          the position of a feed in the history of one master; its type is cursor
//	batch         the pending keys that one stage takes from the feed, or a pass over all keys
//	place         the position of the job in the database, for all masters; it moves in the transaction of the rows (jobPosition)
//
// The invariants:
//
//   - All changes up to a mark's position are flushed, in the last batch, or pending. If a feed may have missed changes, it requires a
//     pass over all keys.
//   - A run first waits until its feed has received every change from before the run. So these changes are in the table when the run ends
//     without an error.
//   - A stage freezes nothing in Redis. Only the last page of a batch moves the place after the changes of the batch. A required pass
//     remains required until it is complete.
//
// What fails, and what then:
//
//   - A connection breaks: the stream reader joins again, at the lowest position of its feeds. A run that waits for the stream fails if
//     the stream fails again.
//   - The server no longer has the history after a position (small backlog, other history, lossy failover), or the keys of a command are
//     unknown: a pass reads all keys.
//   - Too many keys are pending: they are dropped, and a pass reads all keys.
//   - A command empties the database: the setting "on_flush" decides what happens. With "stop" the job waits for an operator.
//   - A run or its process dies: the next run begins at the place in the database, and receives the later changes again.
//
// DESIGN.md beside this file has the steps, and goes through every crash.
package capture
