// Package redisledger keeps the state of jobs in Redis, beside the lock: claimed slots, open runs, results, history, pauses, orders
// to run or to cancel, output and samples. [Ledger] lists the fields of its keys. Every script is a file beside the code that runs it.
//
//	claim    a slot, a retrial or a requested run; only the leader gets it, and only once
//	open     a claimed run without a recorded end
//	finish   the result of a run: an entry of the history, and the job's last result
//	miss     slots that are not run, with the reason; neighbours are one entry
//	idle     runs that found nothing to do; they join one entry, with a count
//	request  an operator's order in {K}:control, until the leader takes or refuses it
//
// The invariants:
//
//   - A slot is claimed at most once over all nodes: one script checks the leader, the pause and last_slot, and then writes.
//   - A repeated claim is answered "ok", or "done" after its end. So a lost reply runs nothing twice.
//   - The history accounts for every slot: as a run, as part of an idle entry, or as a miss with its reason.
//   - The leader is the owner of the lock, or, with the lock on the masters of a quorum, the highest epoch that has claimed here.
//   - A result is recorded once. Only a run that was recorded as lost is recorded again, when its end is reported after all.
//
// What fails, and what then:
//
//   - Another node leads: a claim fails with job.ErrNotLeader, and nothing is written.
//   - A slot is more than a minute ahead of the clock of Redis: the claim fails with job.ErrAhead. A claim of that slot would block all
//     earlier slots.
//   - The leader dies during a run: the next leader finds the open run and records it as lost.
//   - Redis has lost the ledger: nothing is caught up, and the history says that earlier runs are unknown.
//   - The memory of Redis is full: claims and results are written, so that flushes can free memory. A script begins with a write that
//     Redis does not refuse then, and after its first write Redis refuses no further write of the script.
//   - The history grows: entries beyond the count or the age are removed. Output keeps its last bytes.
package redisledger
