// Package operate defines the orders that the command line, the API, the page and the admin socket give. Each of them makes an [Order], and
// gets an [Outcome] as the result.
//
// The reply to an order may be lost although the order is carried out, so the sender may give the order again. The second order then has
// these effects:
//
//	run                    Order.RunID names the run. The run begins once, and the second order gets its outcome.
//	                       [Client] makes an ID, and repeats the order by itself.
//	verify, backfill       Order.RunID names the operation in the same way.
//	pause, resume,         These orders set a state. If the state is already set, the outcome says so. A pause
//	pause_job, resume_job  that ends by itself has an end time instead of a duration.
//	accept                 The order sets a state. Its counts limit the rows that are accepted.
//	replay, drop           Each letter is removed in the transaction that writes it, and an ID is never used again.
//	reload                 The same file is read again.
//	stepdown, cancel       The order applies to the leader or the runs at its arrival. [Client] never sends it twice,
//	(without RunID)        and says that the reply is missing, because the order may have been carried out.
//
// So RunID is the only key that callers need.
package operate
