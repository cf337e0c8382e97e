// Package site finds the servers of locks, ledgers and data. It opens the stores and databases of a configuration, and combines the
// elections on the masters of a quorum into one election.
//
//	LockStores  the Redis servers of the elections: the Redis of the data, or the masters of a quorum
//	Election    the view of an election for commands and pages: its state, and orders to it
//	elections   the elections on the masters of a quorum, as one Election
//	Locks       all locks of a configuration, for `baton lock`
//	Stores      the other Redis servers that jobs read
//	Databases   the databases by their names
//
// The invariants:
//
//   - The functions that open a server do not connect. So commands and daemons start even if a server is away.
//   - The state of an election on a quorum is the answer of a majority of the masters. A master that hangs delays a reading by 250 ms
//     at most, after a majority has answered.
//   - An order to a quorum is sent to each master, and is valid when a majority has it.
//   - The code that opens a store closes it: LockStores close the masters of a quorum, and never the store of the data.
//
// What fails, and what then:
//
//   - A minority of the masters does not answer: the other masters decide.
//   - A majority does not answer: the error names each master and its reason.
//   - A secret is part of an address or of a driver's error: the secret is replaced by *** before the error is returned.
package site
