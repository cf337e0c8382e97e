// Package capture reads the changes in a Redis without help of the application: the replication stream names the changed keys, and their
// present values are read and written. A change is only a hint, so receiving one twice, or one too many, is harmless.
//
//	follower      one for each store: it knows the masters, and has a stream reader for each
//	streamReader  follows one master, for all feeds
//	feed          the pending keys of one job; it lives from the first Stage until Release, beside the runs
//	mark          the position of a feed in the history of one master
//	batch         the pending keys that one stage takes from the feed, or a pass over all keys
//	place         the position of the job in the database, for all masters; it moves in the transaction of the rows
//
// The invariants:
//
//   - All changes up to a mark's position are flushed, in the last batch, or pending. If a feed may have missed changes, it owes a pass.
//   - A run first waits until its feed has received every change from before the run. So these changes are in the table when it ends
//     without an error.
//   - A stage freezes nothing in Redis: only the last page of a batch moves the place after the changes, and a pass is owed until it is
//     complete.
//
// What fails, and what then:
//
//   - A connection breaks: the stream reader joins again, at the least position of its feeds. A run that waits for the stream fails at the
//     next failure.
//   - The server no longer has a position (backlog too small, another history, a lossy failover), or the keys of a command are
//     unknown: a pass.
//   - Too many keys are pending: they are dropped, and a pass reads all keys.
//   - A command empties the database: on_flush decides, and stop waits for an operator.
//   - A run or its process dies: the next one begins at the place in the database, and receives the later changes again.
//
// DESIGN.md beside this file has the steps, and goes through every crash.
package capture
