// Package quorum makes one lock of N locks in stores that know nothing of each other (Redlock): the holder of a majority of these locks
// holds the one lock. It survives the loss of any minority of the stores, which it calls masters.
//
// # Model
//
// Each master keeps the promises of [elector.Lock] for itself: it grants a lease to one owner at a time, for the TTL from the moment
// when it handles the request, by its own clock. A master that has lost its data makes new owners wait for a lease. Messages may be
// lost, late, or both, and may overtake each other.
//
// A request to all masters is sent at s. It counts as granted when a majority has granted it and now < s + TTL − Margin. The lease at
// each of these masters ends after s + TTL, so until then any other majority contains a master that refuses: two owners are never
// granted the lock at once. A renewal is the same with a later s. The other masters' answers cannot change the result, and we do not
// wait for these answers. They only make the next fault harmless, so a master that has lost the lock gets a request to take the lock
// again.
//
// # Epochs rise
//
// Each master gives a term an epoch above all epochs that it knows. The term's epoch is the highest epoch of the majority that granted
// the term. Raise writes this epoch back to a majority W, before the check of the time above. Let T be a term, and U a term that is
// granted later.
//
//   - W and the majority that grants U have a master m in common.
//   - At m, T owns the lock when T is raised, and U owns the lock when U is granted. U was
//     not granted the lock at m before T. Otherwise T was granted the lock at m while U's
//     lease at m ran, but no master does that. Or U's lease at m had ended or been
//     released: then U's check, which comes later, failed.
//   - So m knew the epoch of T when it granted U, and gave U a higher epoch. The epoch of
//     U is at least that epoch.
//
// Only the epochs of terms that were won prove that a node has led: rivals that divide the masters among themselves leave higher epochs
// behind. So the answer that no owner has the lock carries no epoch.
//
// A master that has forgotten its epochs continues from its clock, or from the floor that candidates bring. If this master is m, and
// its clock is wrong as well, only the floor of the databases remains ([elector.Lock]'s Raise).
//
// # What fails, and what then
//
//   - There is no majority: every grant is given back, to all masters that may have
//     granted the lock, also by a request that is still on its way. A rival may hold the
//     other masters: then both come back after a random pause, which grows.
//   - A release is late: it could delete a grant that the same owner has won at that
//     master since. So an owner is spent if not all masters have confirmed its release:
//     the next attempt uses a fresh owner, and names this owner in its answer.
//   - An acquire is so late that its release overtakes it: the master is held for no term,
//     until that lease ends. Requests to one master are sent one at a time and in order,
//     so this needs a connection that was given up and whose bytes still arrive.
//   - The epoch cannot be written back to a majority: the lock is not won, and is given
//     back.
//   - A master hangs: it costs at most the timeout of one request if its answer could
//     decide, and no time if the others have decided.
//   - A master was away when a term began: the master gets the request again at once,
//     because a term with a bare majority ends with the next fault of one master of that
//     majority.
//   - A master loses our lock during a term: the others answer a renewal, and after the
//     renewal this master gets the request for its lock again.
//   - A minority of masters is away: nothing happens. A majority is away: the results of
//     renewals are unknown, the trust window closes, and the term is over; attempts go on.
//   - A master has restarted without data, and the candidate is also new: to both, the
//     lock looks like a lock that never existed. Such a candidate first asks, without
//     taking the lock, whether any master knows of a term. It concludes that there was no
//     term only if all N masters say so. The price is that the first leader of a new lock
//     may be a lease late if rivals ask within the same round trip.
//   - The clock of a minority steps forwards: the leases of these masters end early, and
//     are taken again. The clock of a minority steps backwards: the leases of these
//     masters last longer, and the other masters decide.
package quorum
