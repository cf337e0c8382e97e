// Package staging freezes pending changes in Redis until they are in the database. The stage lies next to its live key and has an id. The
// sources define the changes and read them.
//
//	live key   the key to which the application writes
//	stage      the key with the frozen changes; staging renames the live key to this key
//	meta       the id of the stage, the number of its parts, and the job that has staged it
//	[Key]      these three keys, and the steps of a flush: stage, mark, count, remove, discard
//	[Stages]   finds the stages at all recorded places, also stages that no job flushes any longer
//
// Each step is one script that names the id, and all keys of a stage share a slot of a Cluster.
//
// The invariants:
//
//   - Every node that finds a stage gets the id under which the stage was made. So the next run finishes the stage of a failed run, and
//     nothing is staged twice. Counters that each have their own key get another id when their stage is complete: see counters_seal.lua.
//   - The number of parts is computed once, when the stage is made, because the ledger identifies a part by its number.
//   - Only committed changes are removed, by the id of their stage. A script that names another id changes nothing, and its reply says so.
//   - No key has a TTL. The keys do not contain the job's name: a renamed job finds the stage that it made under its old name.
//   - One script removes few records, since Redis serves no other client while it runs.
//
// What fails, and what then:
//
//   - A stage has no id, or there is an id without a stage: another program wrote to the keys. A source of increments stops with
//     ErrBrokenStage; an idempotent source stages again.
//   - A key has another type than its source reads: ErrWrongType, and nothing is changed.
//   - A reply is lost: a second call of the same script finds that its work is done.
//   - Redis loses the stage in a failover: the changes are lost, just as unstaged changes would be.
package staging
