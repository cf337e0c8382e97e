// Package follow reads the replication stream of a Redis master, so that its caller learns which keys change. It uses a replica's part of
// the protocol, but it is no replica: WAIT never counts it, and neither FAILOVER nor a Sentinel can choose it.
//
//	Join ── a position is known and within the backlog ──▶ PSYNC id offset+1 ──▶ +CONTINUE
//	   └─── none, or too old ──▶ INFO replication, PSYNC at the end ──▶ +CONTINUE (earlier changes are missed)
//	             └── no backlog yet: ask for one, leave, join again
//	             └── refused twice ──▶ +FULLRESYNC, an RDB that is skipped
//	Follow ── every command once, in order; the position after it whenever the stream may be resumed there
//
// What fails, and what then:
//
//   - The connection breaks, the server stops or fails over: Follow returns an error, and the next Join continues from the last
//     position, if the backlog reaches back that far.
//   - A server that shuts down pauses writes, and waits until its replicas have acknowledged everything. We never acknowledge. The server
//     asks for the acknowledgement (REPLCONF GETACK), and after a second of silence Follow leaves (ErrLeft). Until the server has
//     stopped, Join returns ErrStopping.
//   - The received bytes are no command: Follow returns ErrGarbled. The last position must not be used again.
//
// A position is always between two commands and outside of MULTI, because Redis would continue in the middle of a command without an
// error.
package follow
