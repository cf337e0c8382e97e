// Package flush writes the changes of Redis data into a SQL table. It loses no change and applies none twice.
//
// A [Pipeline] connects a [Source] with a [Sink]. A Source is one shard of Redis data, and a Sink is one database. A [Mapping] turns the
// records of the Source into typed rows. Source and Sink are interfaces, so the package depends neither on Redis nor on SQL.
//
// One run:
//
//	compile      the table's catalogue and the job's columns become a Mapping
//	take over    the job's fence in the database gets this term's epoch, once a term
//	stage        the pending changes are frozen in Redis under an id, or the stage
//	             that an earlier run left is found
//	  read       a page of the stage ...
//	  convert    ... becomes rows, unique by key and sorted by key, and dead letters
//	  apply      one transaction: ledger, rows, dead letters, last the fence
//	  done       the page leaves the stage, now or soon, if the source can do so
//	discard      the stage is removed
//
// A run may end between any two of these steps, or in the middle of one: by an error, by a crash, or because the leadership is over. The
// next run, on any node, starts at the top and finds one of these states:
//
//	found                               consequence
//	nothing staged                      a new stage
//	a stage, not or partly applied      the ledger skips the parts that are in the
//	                                    database; the others are applied
//	a stage, wholly applied             every part is skipped, the stage discarded
//	a fence with a higher epoch         ErrFenced, unless the lock is still ours:
//	                                    then our epoch is raised above it
//
// A record that does not fit its columns is never changed to fit. It becomes a dead letter, in the same transaction as the rest of its
// batch.
//
// DESIGN.md beside this file goes through every pair of steps and lists the limits of the promise.
package flush
