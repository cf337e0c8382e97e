// Package model contains the protocols of the lease, of slots, of the flush and of the capture as small transition systems, and a search
// through all their states.
//
//	make model                                  # larger bounds
//	go test -run EachRule -v ./test/model       # what happens without each rule
//
// The parts: explore.go searches any protocol (breadth-first, one state for all states that differ only in the names of nodes). lease.go
// is the protocol of the lease, lease_state.go its state. slots.go and slots_state.go are the same for slots, and flush.go,
// flush_data.go, flush_keys.go, flush_faults.go and flush_state.go for the flush. capture.go, capture_write.go and capture_state.go are the
// same for the capture. rules.go has the rules and promises. story.go, slots_story.go, flush_story.go and capture_story.go tell a
// counterexample.
//
// # The lease
//
// Time passes in ticks. Between two ticks any number of steps can happen, in any order. A node that does nothing is a slow or suspended
// node, and a node that ends its term without a release is a node that has crashed. Redis executes requests one at a time. Requests
// overtake each other, are lost, arrive late, and arrive twice. Answers arrive late or are lost. Redis restarts with its data, without
// data, or with an old copy of its data (a snapshot, or a replica that lags), and then is another incarnation. The clock of a node
// misses ticks, and Redis' clock is set back. Bounds limits how often these things happen.
//
// Owners are numbered anew in each state, so the search ends although each campaign has a new UUID. Epochs are small numbers: Redis'
// TIME counts as one more than all epochs so far. Answers that only make a node wait or stop are read at once or never, because a node
// that reads such an answer later behaves until then like a node that has lost it. A node renews at most once a tick, unless the renewal
// has no answer.
//
// # Slots
//
// One job has a few slots and at most one retrial. Each node handles one slot after another: it claims the slot, or records the slot as
// missed. So the model contains all policies of catch-up. A run that its term leaves open is recorded as lost, and tried again (on_lost:
// rerun). A term can end at any time. Then its runs are killed, and its requests are late; the model of the lease shows that this is so.
// Requests to the ledger are lost, arrive late, and arrive twice. Not in the model: overlap, pause, manual runs, idle runs, deadlines,
// clocks that differ, a ledger that loses its data, a history that is shorter than the repetition of a request.
//
// # The flush
//
// An application writes changes, and leaders flush one shard: counters, counters with a key each, hashes, a stream, or totals. A page is
// one key or one entry. Any leader may wait before each step while another node is elected, and then go on. Redis executes a script at
// once or late, and the answer may be lost. A transaction is open from its first row to the end of its COMMIT. It holds the locks of its
// rows, of its ledger or position, and after its check the lock of the fence. COMMIT may arrive after its client has gone. Redis falls
// back to an earlier state. A week passes and the ledger is pruned. The configuration changes the size of a part.
//
// What Redis loses is no broken promise of the flush (section 6):
//
//   - A change that a failover loses before the change is in the database is lost.
//   - A failover that undoes a staging, or the sealing of a stage, lets the same increments be staged again under another id. They are
//     added twice.
//   - If a failover loses the value of a hash, the table may keep that value until the hash is marked again. The same is true if the
//     application marks a hash apart from its change, and the failover loses the mark alone.
//
// testdata/stories_failover.txt tells the second and the third. A stream and totals have no such limit: nothing is read twice, and what may
// be missing raises an alarm.
//
// Not in the model: lists, sorted sets, scans; lanes; dead letters; a job that was renamed; a cluster of databases without locks
// between its servers; a database that loses commits; a higher epoch in the fence, which the model of the lease has; retention by time; an
// id that a stream gives twice; a position of a stream whose record Redis has lost (here it is the one before all entries, and
// limits other jobs); on_gap: continue; the other choices of on_decrease.
//
// # The capture
//
// An application sets and deletes keys, and calls FLUSHALL. The replication stream says which keys have changed, and a backlog keeps its
// last commands. Leaders follow the stream also while a run waits, read keys, write rows and the place, make passes and sweep. Each may
// wait before any step, end, or be deposed. The answer of COMMIT is lost, or COMMIT arrives after its client has gone. A replica that lags
// is promoted, with a second replid. A master restarts with an old snapshot and without its history.
//
// Two promises are checked in every state, for each row that is not equal to its key. A leader that begins now must learn it: from the
// place, or from the stream after the place. The present leader must learn it, too: from the pass that it owes, from its pending keys, or
// from the stream that it has not received.
//
// Not in the model: max_pct; several masters, and slots that move; a former master that is isolated and still answers; keys with members;
// keys that expire; commands that are unknown, or inside MULTI; pending keys that exceed their budget; the basis of a job and the adoption
// of a table; the pause before a pass that may have missed keys is made again; a place that moves while the stream is cut off. A run of
// the model takes its batch when it has received the whole stream, so the model does not show that a run waits for earlier changes.
//
// # Not in the model of the lease
//
// Orders of operators, reservation, priority, pause, deferring candidates; lock keys that vanish while the term stays; other programs'
// locks; an old master that still acknowledges (wait_replicas); data that is replaced without another run_id or replid; the quorum;
// Redisson's format; epochs that are forged; two processes of one node.
package model
