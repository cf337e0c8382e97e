// Package source has the kinds of sources that a flush reads from Redis. A Spec describes each kind, and Sources lists all of them.
// spec.Kinds has the part that the configuration needs. Each Lua script is a file of its own next to the code that runs it.
//
//	counters             a stage is cut into parts, and the database's ledger remembers each part: deltas are added once
//	counters, watermark  totals stay in Redis; the database keeps the flushed total of each counter
//	hashes, zset         an index of changed ids is staged; then the present rows are read, so writing one twice is harmless
//	list                 a stage is cut into parts, as for counters; committed parts are trimmed off its head
//	stream               nothing is staged; the position is in the database, and moves with the rows
//	scan                 nothing is staged; each run is a pass over all keys of a pattern
//	capture              the replication stream names the changed keys: see package capture
//
// What fails, and what then:
//
//   - A run dies: its stage keeps its id, and the next run continues with it, on any node. A pass that was interrupted starts again.
//   - A stage is missing, or has another id: flush.ErrStaleStage. Nothing more is read from that stage.
//   - A key holds another type: staging.ErrWrongType, for the whole source, or for a single row of hashes. Scan and capture treat such
//     a key as missing; totals in single keys leave it out.
//   - A Cluster moves a slot: single rows are read at both nodes; a pass reports that it may have missed keys.
//   - Unread entries of a stream were removed: flush.ErrGap, unless on_gap is "continue".
//
// A new kind of source is a file with its Spec, a line in Sources, an entry in spec.Kinds, and tests: an entry in the conformances here,
// and a fixture in test/crash. Rows of vanished keys are deleted only if the kind's policy allows that. A kind needs Mark if it delivers
// states and does not read everything. If a kind has a setting that no other kind has, config.From needs a field for it.
package source
