// Package follow reads the replication stream of a Redis master, so that its caller learns which keys change. It speaks the replica's
// side of the protocol and is no replica: it never counts for WAIT, and neither FAILOVER nor a Sentinel can choose it.
//
//	Join ── a position is known and within the backlog ──▶ PSYNC id offset+1 ──▶ +CONTINUE
//	   └─── none, or too old ──▶ INFO replication, PSYNC at the end ──▶ +CONTINUE (earlier changes are missed)
//	             └── no backlog yet: ask for one, leave, join again
//	             └── refused twice ──▶ +FULLRESYNC, an RDB that is skipped
//	Follow ── every command once, in order; the position after it whenever the stream may be resumed there
//
// What fails, and what then:
//
//   - The connection breaks, the server stops or fails over: Follow returns an error, and the next Join
//     goes on from the last position, if the backlog reaches back that far.
//   - A server that shuts down waits until its replicas have acknowledged everything, with writes paused.
//     We never do: it asks (REPLCONF GETACK), and after a second of silence Follow leaves (ErrLeft).
//     Join does not come back before the server has stopped (ErrStopping).
//   - A byte that is not the beginning of a command: ErrGarbled. The position is of no use any more.
//
// A position is always between two commands and outside MULTI: Redis continues within a command, too,
// and says nothing about it.
package follow
