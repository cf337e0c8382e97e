package elector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"baton/internal/heartbeat"
)

// These are the errors of a Lock, matched by errors.Is. Any other error means that the outcome is unknown: the request may or may not
// have been applied.
var (
	// ErrLost means that this owner does not hold the lock.
	ErrLost = heartbeat.ErrLost
	// ErrRefused means that the server answered, but refused the request. For example, the server is a read-only replica or still loading,
	// the password is wrong, or a key has a wrong type. The text of the error says which request was refused, and why.
	ErrRefused = errors.New("not done")
	// ErrEpoch means that no epoch can follow the epoch in the store, or in a database, because that epoch was forged or is faulty.
	// errors.Is finds that ErrEpoch is an ErrRefused.
	ErrEpoch = fmt.Errorf("refused: %w", ErrRefused)
	// ErrSpent means that a release of this owner is in progress, and may arrive at any time. The owner must not ask for the lock again.
	ErrSpent = errors.New("a late release may follow")
)

// Lock is the contended lock of one election, as seen by one node. Every method makes one attempt, which ctx limits. No method retries
// after an unknown outcome.
type Lock interface {
	// Acquire takes the lock if it is free. If the owner that holds the lock asks again, Acquire answers Won with the same epoch and renews
	// the lease. This is needed because the reply to the owner's first request may have been lost.
	Acquire(ctx context.Context, c Candidate) (Answer, error)
	// Renew extends the lease by its TTL if owner still holds it, and returns the operators' order to the leader. If the store has lost the
	// lock, and no node has won there since, Renew restores the lock. It identifies the term by the argument epoch. It returns ErrLost if
	// another client holds the lock, or if no client holds it because the lease ran out. It is called only inside the trust window. If it
	// needs a second request, it calls [Expired] before that request.
	Renew(ctx context.Context, owner string, epoch int64) (Order, error)
	// Release gives up the lock if owner holds the lock; otherwise it does nothing.
	Release(ctx context.Context, owner string, h Handover) error
	// Raise lifts the epoch of owner's term above floor. It returns ErrLost as Renew does.
	Raise(ctx context.Context, owner string, floor int64) (int64, error)
}

// Expired returns an error if ctx is the context of a renewal and the trust window of the term has ended. See [heartbeat.Expired].
func Expired(ctx context.Context) error { return heartbeat.Expired(ctx) }

// Candidate describes one node's request for the lock.
type Candidate struct {
	Owner string // the UUID that the term will have
	// Floor is the highest epoch that this node knows. The epoch of the term will be above it. Zero means that the node knows no earlier
	// term. If the store also knows no earlier term, the store is new. If Floor is not zero, such a store has lost its data: then no node
	// wins before the lease of a leader that the store has forgotten must have ended.
	Floor int64
	// Lease is the longest lease that a leader may still trust, as far as this node knows. A store that has lost its data makes every
	// candidate wait at least that long. 0 means unknown.
	Lease time.Duration
	// Observer means that this node never leads. It asks only to learn the leader.
	Observer bool
	// Deferring means that the node takes the lock only if it is reserved for the node. If the lock is free but not reserved, the node
	// leaves it to other nodes for now: the answer is then Wait with [CodeLeft].
	Deferring bool
	// Polling means that nothing suggests a change since the last answer, which was Held. The lock may then send a cheaper request to the
	// store. If it answers Held again, the Holder in its answer may be out of date.
	Polling bool
}

// Outcome is the result of a request to acquire a [Lock].
type Outcome int

// These are the outcomes.
const (
	Held Outcome = iota // another client holds the lock
	Won                 // this owner holds the lock, under Epoch
	Wait                // no client holds the lock, and this candidate may not have it yet: see Code and Reason
)

// Code is the reason why a free lock is not granted, or why a term has ended, in a form for programs. A type with a field Code also has a
// field Reason: the same reason as a text with details.
type Code string

// These codes say why a free lock is not granted. They belong to an answer with the outcome Wait, or to a node that does not ask for the
// lock.
const (
	CodePaused     Code = "paused"     // an operator has paused the election
	CodeQuarantine Code = "quarantine" // the store may have forgotten a leader
	CodeReserved   Code = "reserved"   // the lock is reserved for a named successor
	CodePriority   Code = "priority"   // a node of a higher priority goes first
	CodeCoolDown   Code = "aside"      // the node has given the lead up, and leaves it to others for now
	CodeLeft       Code = "left"       // the node could win, but it is an observer, or deferring
)

// These codes of events say why a term has ended.
const (
	CodeBalance    Code = "balance"     // stepped down to spread the locks over the nodes
	CodeAbdicated  Code = "abdicated"   // stepped down, because this node cannot reach the servers that its jobs need
	CodeLeaseEnded Code = "lease_ended" // recorded by the next leader
	CodeCrashed    Code = "crashed"     // recorded on its host, after its process has ended
)

// Answer is the answer of a [Lock] to a request to acquire it.
type Answer struct {
	Outcome Outcome
	Epoch   int64         // of the won term (Won), of the holder's term (Held), or of the last term (Wait); 0 while unknown
	Holder  string        // node that holds the lock; "" when a foreign client does
	Left    time.Duration // until the lease ends (Held) or the wait is over (Wait)
	Lease   time.Duration // of Held: the length of the holder's lease; 0 while unknown
	Code    Code          // of Wait
	Reason  string        // of Wait: "reserved for db2", "paused by alice: upgrade"
	FreeFor time.Duration // of Won: how long no leader had given a sign of life; 0 while unknown
	// Owner is the owner of the won term, if it is another owner than the candidate's. The lock uses another owner if a late request might
	// still release the lock for the candidate's owner. Otherwise Owner is "".
	Owner string
}

// Order is the order that operators have given to the leader. The zero Order demands nothing.
type Order struct {
	StepDown bool   // because of an order to step down, or because the election is paused
	To       string // the named successor, if any
	Reason   string // for the event history: "asked by alice: upgrade"
	Code     Code   // the same for programs; "" for an operator's order
}

// Handover says how a term ended, and to which node the lock should go.
type Handover struct {
	Event  string // stepped_down, released, expired …: a word of the event history
	Reason string
	Code   Code   // "" where Event alone is enough
	To     string // the node for which the lock is reserved for ReserveFor
}

// ReserveFor is how long a released lock is kept for a named successor.
const ReserveFor = 2 * time.Second

// Hint is news from the store that may shorten a wait. Hints may be lost, repeated or false, because a hint only causes an attempt earlier
// than it would be made without the hint.
type Hint int

// These are the hints.
const (
	HintReleased    Hint = iota // the lock was released
	HintControl                 // an operator's order awaits the leader
	HintSubscribed              // hints were interrupted and are back
	HintInterrupted             // no hints come for a while
)
