// Package redislock keeps the lock of an election in Redis, and its further data: epochs, the list of nodes, orders and events.
//
//	Lock      one node's view of the lock: acquire, renew, release, raise; an elector.Lock
//	Election  the view of everyone else: the state of the election ([ElectionState]), orders, pauses, events
//	Watched   an election whose wake channel is listened to: hints only
//
// The keys of one election share a slot of a Cluster: K has the owner. {K}:term has the epoch, and the incarnation of Redis in which
// the owner won. {K}:nodes has the nodes, {K}:control the orders and {K}:events the history. While {K}:quarantine exists, no new owner
// may win.
//
// Each step is one Lua script, in a file beside the code that runs it. If the server forbids scripts, a transaction runs the same
// script in this process: it WATCHes and reads the keys, and writes by MULTI/EXEC. So each rule is written once.
//
// The invariants:
//
//   - A script that changes the lock compares the owner first. It writes the key of the lock last, so that the lock is not taken after
//     an error.
//   - An owner that asks again is answered "won" with the same epoch, because a lost reply must not lock it out.
//   - Epochs rise. A term's epoch is above the stored one, above the candidate's floor and, in a Redis that may have lost
//     epochs, above the clock of Redis. An epoch that is too high to be true is refused, not followed.
//   - If no owner has confirmed an incarnation of Redis, no new owner wins in it for as long as a lease lasts. The reason is that a
//     leader that this Redis has forgotten may still trust its lease. That leader may renew, and writes its key again.
//
// What fails, and what then:
//
//   - A request is not answered: its outcome is unknown, and the elector decides. A refusal (READONLY, LOADING, OOM and their
//     like) was not applied: it matches elector.ErrRefused, and the connection is dropped.
//   - An old request arrives late, after Redis has lost its data: such a script answers "prove". The client then sends it again with a
//     word that did not exist before.
//   - Redis does not know a script: the client sends the whole script. A key has the wrong type: the error names the key.
//   - The subscription breaks: hints are missing, and polls find the changes.
package redislock
