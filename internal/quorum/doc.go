// Package quorum makes one lock of N locks in stores that know nothing of each other (Redlock): the holder of a majority of them holds
// it. It survives the loss of any minority of the stores, which it calls masters.
//
// # Model
//
// Each master keeps the promises of [elector.Lock] for itself: it grants a lease to
// one owner at a time, for the TTL from when it handles the request, by its own
// clock; one that has lost its data makes new owners wait for a lease. Messages may
// be lost, late, or both, and overtake each other.
//
// A request to all masters is sent at s. It counts as granted when a majority has granted it and now < s + TTL − Margin. The lease of
// each of them ends after s + TTL, so until then any other majority has one among it that refuses: two owners are never granted at once.
// A renewal is the same with a later s. The other masters' answers cannot change that, and we do not wait for them; they only make the
// next fault harmless, so a master that has lost the lock gets a request to take it again.
//
// # Epochs rise
//
// Each master gives a term an epoch above all that it knows. The term's is the
// highest of those of the majority that granted it, and it is written back to a
// majority W, by Raise, before the check of the time above. Be T a term and U one
// that is granted later.
//
//   - W and the majority that grants U have a master m in common.
//   - At m, T owns the lock when it is raised, and U when it is granted. U was not
//     granted m before T: then either T was granted m while U's lease there ran,
//     which no master does, or U's lease there had ended or been released, and U's
//     check, which comes later, failed.
//   - So m knew the epoch of T when it granted U, and gave U a higher one. U's is at
//     least that.
//
// Only the epochs of terms that were won prove that a node has led: rivals who divide the masters among themselves leave higher ones
// behind. So the answer that no owner has the lock carries no epoch.
//
// A master that has forgotten its epochs goes on from its clock, or from the floor that candidates bring. If it is that very m, and its
// clock is wrong as well, only the floor of the databases remains ([elector.Lock]'s Raise).
//
// # What fails, and what then
//
//   - No majority: every grant is given back, to all masters that may have granted it,
//     also by a request that is still on its way. A rival may have the rest: then
//     both come back after a random pause, which grows.
//   - A release is late: it could take away a grant that the same owner has won at that
//     master since. So an owner is spent if not all masters have confirmed its release:
//     the next attempt has a fresh one, and says so in its answer.
//   - An acquire is so late that its release overtakes it: the master is held for
//     no term, until that lease ends. Requests to one master go one at a time and in
//     order, so this takes a connection that was given up and whose bytes still
//     arrive.
//   - The epoch cannot be written back to a majority: not won, given back.
//   - A master hangs: it costs at most the timeout of one request where its answer
//     could decide, and nothing where the others have decided.
//   - A master was away when a term began: it gets the request again at once, since a term
//     that has a bare majority ends with the next fault of one of these.
//   - A master is lost to us in a term: the others answer a renewal, and
//     after it this master gets the request for its lock again.
//   - A minority of masters is away: nothing. A majority: renewals are unknown, the
//     trust window closes, and the term is over; attempts go on.
//   - A master has restarted with nothing, and the candidate is new, too: to both
//     the lock looks like one that never was. Such a candidate asks first, without
//     taking anything, whether any master knows of a term; it believes that there
//     was none only if all N say so. The price: where rivals come within the same
//     round trip to a lock that truly never was, the first leader may be a lease late.
//   - The clock of a minority steps forwards: their leases end early; they are
//     taken again. Backwards: their leases last longer; the others decide.
package quorum
