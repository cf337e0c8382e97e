// Package linear checks that the lock is linearizable: five real processes, each a real
// elector over a real lock, under a nemesis that is drawn from a seed. What they did is
// checked against a model of a leased lock, and their trust windows against each other.
//
//	make chaos-lock                       # all designs; CHAOS_SEED=N replays a schedule
//	make chaos-lock CHAOS_DESIGN=quorum CHAOS_FAULTS=50
//
// The parts: package wire is the line that a node writes for everything that it does,
// package node the node. The test draws a schedule (schedule), carries it out and starts
// again what dies (lab, faults, unit) on the servers of a design (ground), while it
// follows what the nodes write (history). Then it judges: the operations by the model
// (model), the windows and epochs by themselves (windows), and says what it saw (report).
//
// # What is a legal history
//
// The lock is held by one owner; its lease lasts for its TTL from when the request that
// took or renewed it was applied, which is somewhere between the request's call and its
// return. The model takes the earliest moment that the order of the operations allows, so
// it never calls a lease longer than it was. A win is legal if nobody holds the lock, if
// the holder has released it, or if the holder's lease can have ended before the win
// returned; and its epoch must be above every epoch before. A renewal and a lift of the
// epoch succeed for the holder only. A release by the holder frees the lock, by another
// it does nothing.
//
// Answers that change nothing (held, wait, lost, refused) are legal always: to hold back
// is safe. They are left out. So are acquires, renewals and lifts of unknown outcome:
// each may or may not have been applied, and whatever order of operations is legal if it
// was, is legal if it was not. An unknown renewal only makes a lease longer; an unknown
// acquire only takes the lock from others, and if its owner asks again and is told that
// it has won, that win can have happened then; an unknown lift only makes epochs rise. A
// release of unknown outcome stays, without an end: it may be applied at any time later.
//
// What stands above the lock, the elector, is judged by the windows: from the first to
// the last moment at which a term's work ran inside its trust window. No two of them may
// overlap.
package linear

import (
	"testing"

	"baton/internal/testsupport"
)

func TestMain(m *testing.M) { testsupport.Main(m) }
