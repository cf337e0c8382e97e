package elector

import "time"

// EventKind names an event, in the words of the event history.
type EventKind string

// The kinds of events.
const (
	EventWon         EventKind = "won"          // a term begins
	EventStandby     EventKind = "standby"      // another client holds the lock: Holder, or "" for a foreign client
	EventWaiting     EventKind = "waiting"      // no client holds the lock, and this node may not take it yet: Reason
	EventStopping    EventKind = "stopping"     // the work was cancelled: Reason
	EventLost        EventKind = "lost"         // the term ended: the lock is another node's
	EventExpired     EventKind = "expired"      // the term ended: the trust window closed unrenewed
	EventSteppedDown EventKind = "stepped_down" // the term ended by order, or by its work
	EventReleased    EventKind = "released"     // the term ended by shutdown
	EventWithdrawn   EventKind = "withdrawn"    // a store has granted a term that never began: too few stores or replicas have it
	EventStoreLost   EventKind = "store_lost"   // the store does not answer: Err
	EventStoreBack   EventKind = "store_back"   // it does again
	EventRenewal     EventKind = "renewal"      // one renewal: Took, Err
)

// Ends reports whether a term has ended with this event, its lock given up as far
// as that was possible.
func (k EventKind) Ends() bool {
	switch k {
	case EventLost, EventExpired, EventSteppedDown, EventReleased:
		return true
	}
	return false
}

// Event goes to the observer, from the elector's own goroutines: an observer
// must return soon.
type Event struct {
	Kind   EventKind
	Owner  string
	Epoch  int64
	Holder string
	Lease  time.Duration // of the term; 0 while unknown
	Reason string
	Code   Code // of the end of a term, where Kind alone is not enough
	Took   time.Duration
	Err    error
	// Released: the store has confirmed that this owner no longer holds the lock.
	Released bool
}
