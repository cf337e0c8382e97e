// Package staging freezes pending changes in Redis, beside their key and under an id, until they are in the database. The sources define
// the changes and read them.
//
//	live key   what the application writes to
//	stage      the frozen changes, in a key of their own; the live key was renamed to it
//	meta       the id of the stage, the number of its parts, and the job that has staged it
//	[Key]      the three of them, and the steps: stage, mark, count, remove, discard
//	[Stages]   finds the stages in the list of places, also those that no job flushes any more
//
// Each step is one script that names the id, and all keys of a stage share a slot of a Cluster.
//
// The invariants:
//
//   - A stage that exists is returned with its own id, whoever asks: so a run that died is finished, and nothing is staged twice.
//   - The number of parts is computed once, when the stage is made: the ledger knows parts by their number.
//   - Only changes that are committed are removed, by the id of their stage. Another id changes nothing, and the answer says so.
//   - No key has a TTL. The keys do not contain the job's name: a job with another name finds the stage that it left.
//   - One script removes few records, since Redis serves no other client meanwhile.
//
// What fails, and what then:
//
//   - A stage has no id, or an id no stage: another program wrote to the keys. A source of increments stops with ErrBrokenStage; an
//     idempotent one stages again.
//   - A key has another type than its source reads: ErrWrongType, and nothing is changed.
//   - A reply is lost: the same script again finds its own work done.
//   - Redis loses the stage in a failover: the changes are lost, as they would be unstaged.
package staging
