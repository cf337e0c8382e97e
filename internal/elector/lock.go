package elector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"baton/internal/heartbeat"
)

// Errors that a Lock answers with, matched by errors.Is. Any other error means:
// outcome unknown, it may or may not have been applied.
var (
	// ErrLost: the lock is not held by this owner.
	ErrLost = heartbeat.ErrLost
	// ErrRefused: the server answered, and did not do it (read-only replica, still loading, wrong password, key of a wrong
	// type). Its text says what and why.
	ErrRefused = errors.New("not done")
	// ErrEpoch: no epoch can follow the one in the store, or in a database: that is a forgery or a fault. It is an ErrRefused.
	ErrEpoch = fmt.Errorf("refused: %w", ErrRefused)
	// ErrSpent: a release of this owner is under way, and may come at any time. The
	// owner must not ask for the lock again.
	ErrSpent = errors.New("a late release may follow")
)

// Lock is the contended lock of one election, as seen by one node. Every method is one attempt, bounded by ctx; none repeats an unknown
// outcome.
type Lock interface {
	// Acquire takes the lock if it is free. Asked again by the owner that holds
	// it, it answers Won with the same epoch and renews the lease: the reply to
	// the first request may have been lost.
	Acquire(ctx context.Context, c Candidate) (Answer, error)
	// Renew extends the lease by its TTL if owner still holds it, and brings back the operators' order to the leader. If the store has
	// lost the lock, and no node has won there since, it gives the lock back: epoch identifies the term. ErrLost if another client holds
	// it, or none because the lease ran out. It is called inside the trust window only.
	Renew(ctx context.Context, owner string, epoch int64) (Order, error)
	// Release gives the lock up if owner holds it; if not, it does nothing.
	Release(ctx context.Context, owner string, h Handover) error
	// Raise lifts the epoch of owner's term above floor. ErrLost as in Renew.
	Raise(ctx context.Context, owner string, floor int64) (int64, error)
}

// Candidate is one node's request for the lock.
type Candidate struct {
	Owner string // the UUID that the term will have
	// Floor is the highest epoch that this node knows of; the term's will be above
	// it. With zero the node knows of no earlier term at all, so a store that knows
	// of none either is new; otherwise such a store has lost its data, and no node
	// wins before the lease of a leader that it has forgotten must have ended.
	Floor int64
	// Lease is the longest that a leader may still trust, by what this node knows. A store that has lost its data makes every candidate
	// wait at least that long. 0: unknown.
	Lease time.Duration
	// Observer: this node never leads. It asks to learn the leader.
	Observer bool
	// Deferring: the node takes the lock if it is reserved for it; a lock that is merely free it leaves to others for now. The answer is
	// Wait then, [CodeLeft].
	Deferring bool
	// Polling: nothing suggests that anything has changed since the last answer,
	// Held. A lock may then answer Held by a cheaper request, with an older Holder.
	Polling bool
}

// Outcome is the answer to an acquire.
type Outcome int

// The outcomes.
const (
	Held Outcome = iota // another client holds the lock
	Won                 // it is ours, under Epoch
	Wait                // no client holds it, and we may not have it yet: Code and Reason
)

// Code says to programs why a free lock is not granted, or why a term has ended. Its words and details are in a Reason.
type Code string

// Why a free lock is not granted: codes of a Wait, and of a node that asks for nothing.
const (
	CodePaused     Code = "paused"     // an operator has paused the election
	CodeQuarantine Code = "quarantine" // the store may have forgotten a leader
	CodeReserved   Code = "reserved"   // for a named successor
	CodePriority   Code = "priority"   // a node of a higher priority goes first
	CodeCoolDown   Code = "aside"      // the node has given the lead up, and leaves it to others for now
	CodeLeft       Code = "left"       // the node could win, but it is an observer, or deferring
)

// Why a term has ended: codes of events.
const (
	CodeBalance    Code = "balance"     // stepped down to spread the locks over the nodes
	CodeAbdicated  Code = "abdicated"   // stepped down, since it cannot reach what its jobs need
	CodeLeaseEnded Code = "lease_ended" // recorded by the next leader
	CodeCrashed    Code = "crashed"     // recorded on its host, after its process has ended
)

// Answer is the answer to an acquire.
type Answer struct {
	Outcome Outcome
	Epoch   int64         // of the term that was won, or of the holder's, or of Wait the last one; 0 while unknown
	Holder  string        // node that holds the lock; "" when a foreign client does
	Left    time.Duration // until the lease ends (Held) or the wait is over (Wait)
	Lease   time.Duration // of Held: the lease that the holder asks for; 0 while unknown
	Code    Code          // of Wait
	Reason  string        // of Wait: "reserved for db2", "paused by alice: upgrade"
	FreeFor time.Duration // of Won: for how long no leader had given a sign of life; 0 while unknown
	// Owner is the owner of the term that was won, where the lock could not use the
	// candidate's any more: a late request might still release it. Else it is "".
	Owner string
}

// Order is the operators' order to the leader; the zero Order asks for nothing.
type Order struct {
	StepDown bool   // by an order of its own, or because the election is paused
	To       string // the named successor, if any
	Reason   string // for the event history: "asked by alice: upgrade"
	Code     Code   // the same for programs; "" for an operator's order
}

// Handover says how a term ended and which node the lock should go to.
type Handover struct {
	Event  string // stepped_down, released, expired …: the event history's word
	Reason string
	Code   Code   // "" where Event alone is enough
	To     string // reserve the lock for this node for ReserveFor
}

// ReserveFor is how long a released lock is kept for a named successor.
const ReserveFor = 2 * time.Second

// Hint is news from the store that may cut a wait short. Hints may be lost,
// repeated or false: they only ever cause an attempt that would come anyway.
type Hint int

// The hints.
const (
	HintReleased    Hint = iota // the lock was released
	HintControl                 // an operator's order awaits the leader
	HintSubscribed              // hints were interrupted and are back
	HintInterrupted             // no hints come for a while
)
