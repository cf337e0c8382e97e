// Package operate is the one way of an order: whether it comes on the command line, by the API, on the
// page or at the admin socket, makes an [Order], and what becomes of it is an [Outcome].
//
// The reply to an order may be lost while the order is carried out, so that it is given again. What then:
//
//	run                    Order.RunID names the run: it is begun once, and the second order gets its outcome.
//	                       [Client] makes an ID, and repeats the order without being asked.
//	verify, backfill       Order.RunID names them likewise.
//	pause, resume,         They order a state. If it is there already, the outcome says so. A pause
//	pause_job, resume_job  that ends alone has a time, and no duration.
//	replay, drop           Each letter is removed in the transaction that writes it, and an ID is never used again.
//	reload                 The same file is read again.
//	stepdown, cancel       They mean the leader, or the runs, at their arrival. [Client] never sends one twice,
//	(without RunID)        and says that the reply is missing, not that nothing was done.
//
// So no key is needed beside RunID.
package operate
