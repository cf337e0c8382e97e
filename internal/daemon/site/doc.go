// Package site knows where locks, ledgers and data live. It opens the stores and databases of a configuration, and makes one election of
// those on the masters of a quorum.
//
//	LockStores  the Redis that elections take place in: the one of the data, or the masters of a quorum
//	Election    the view of an election for commands and pages: its state, and orders to it
//	elections   those on the masters of a quorum, as one Election
//	Locks       all locks of a configuration, for `baton lock`
//	Stores      the further Redis that jobs read
//	Databases   the databases by their names
//
// The invariants:
//
//   - Opening connects to nothing. So a server that is away keeps no command and no daemon from starting.
//   - An election on a quorum is what a majority of the masters answers. A master that hangs holds up a reading by a
//     quarter of a second at most, once a majority has answered.
//   - An order to a quorum is sent to each master, and holds once a majority has it.
//   - The closer is the opener: LockStores close the masters of a quorum, and never the store of the data.
//
// What fails, and what then:
//
//   - A minority of the masters does not answer: their answers are missing, and the rest decides.
//   - A majority does not answer: the error names each master and its reason.
//   - A secret is part of an address or of a driver's error: it is replaced by *** before the error leaves.
package site
