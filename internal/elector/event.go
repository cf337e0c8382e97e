package elector

import "time"

// EventKind names the kind of an event, in the words that the event history uses.
type EventKind string

// These are the kinds of events.
const (
	EventWon         EventKind = "won"          // a term begins
	EventStandby     EventKind = "standby"      // another client holds the lock: Holder, or "" for a foreign client
	EventWaiting     EventKind = "waiting"      // no client holds the lock, and this node may not take it yet: see Reason
	EventStopping    EventKind = "stopping"     // the work was cancelled: see Reason
	EventLost        EventKind = "lost"         // the term ended, because the lock belongs to another node
	EventExpired     EventKind = "expired"      // the term ended, because the trust window closed without a renewal
	EventSteppedDown EventKind = "stepped_down" // the term ended by order, or by its work
	EventReleased    EventKind = "released"     // the term ended by shutdown
	EventWithdrawn   EventKind = "withdrawn"    // a store has granted a term that never began: too few stores or replicas have it
	EventStoreLost   EventKind = "store_lost"   // the store does not answer: see Err
	EventStoreBack   EventKind = "store_back"   // the store answers again
	EventRenewal     EventKind = "renewal"      // one renewal: see Took and Err
)

// Ends reports whether an event of this kind ends a term. The lock was then released, if that was possible.
func (k EventKind) Ends() bool {
	switch k {
	case EventLost, EventExpired, EventSteppedDown, EventReleased:
		return true
	}
	return false
}

// Event describes an event of an election for the observer, which is the function Observe of [Config]. The elector calls the observer from
// its own goroutines, so the observer must return soon.
type Event struct {
	Kind   EventKind
	Owner  string
	Epoch  int64
	Holder string
	Lease  time.Duration // of the term; 0 while unknown
	Reason string
	Code   Code // the code of a term's end, where Kind alone is not enough
	Took   time.Duration
	Err    error
	// Released means that the store has confirmed that this owner no longer holds the lock.
	Released bool
}
