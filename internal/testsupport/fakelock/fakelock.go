// Package fakelock contains a store in memory for the lock of an election. This store can have every fault of a network. It is for tests of
// time logic inside a bubble of testing/synctest. Such tests prove nothing about Redis, so the conformance suite in package locktest runs
// against this store and against Redis.
package fakelock

import (
	"context"
	"errors"
	"sync"
	"time"

	"baton/internal/elector"
)

// Fault says what happens to one request. The zero Fault means that the network works without delay.
type Fault struct {
	Before      time.Duration // delay before the store; the request is applied even if the caller has given up
	After       time.Duration // delay of the reply
	LoseRequest bool          // never applied, never answered
	LoseReply   bool          // applied, never answered
	Refuse      bool          // answered with elector.ErrRefused, not applied
	Deaf        bool          // the caller ignores its ctx until the reply comes (a driver that hangs)
}

// Store is the state of the lock that the nodes of a test share.
type Store struct {
	ttl time.Duration

	mu      sync.Mutex
	owner   string
	node    string
	expires time.Time
	freed   time.Time // when the last leader released the lock, or renewed it for the last time
	epoch   int64
	// incarnation counts the starts of the store, from 1. confirmed is the incarnation in which a node last won or renewed the lock; 0
	// means that the store knows no term.
	incarnation, confirmed int
	accidents              int // number of restarts and losses of data
	quarantined            int // the incarnation whose quarantine has begun
	quarantine             time.Time
	reserved               string
	until                  time.Time
	order                  elector.Order
	orderFor               string
	hints                  []chan elector.Hint
	owners                 []string // every owner that has won, in order
}

// NewStore makes an empty store whose leases last ttl.
func NewStore(ttl time.Duration) *Store { return &Store{ttl: ttl, incarnation: 1} }

// Node returns the lock for the node with this id. The function fault is called once for every request, and returns the fault of the
// request; if fault is nil, no request has a fault. The argument op of fault is "acquire", "renew", "release" or "raise".
func (s *Store) Node(id string, fault func(op string) Fault) *Node {
	if fault == nil {
		fault = func(string) Fault { return Fault{} }
	}
	return &Node{store: s, id: id, fault: fault}
}

// Hints returns a channel on which the store announces releases and orders.
func (s *Store) Hints() <-chan elector.Hint {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := make(chan elector.Hint, 8)
	s.hints = append(s.hints, c)
	return c
}

// Holder returns the owner value and the node of the term that holds the lock now, or "" if the lock is free.
func (s *Store) Holder() (owner, node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	return s.owner, s.node
}

// Owners returns the owner value of every term so far, in the order of the terms.
func (s *Store) Owners() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.owners...)
}

// Steal gives the lock to a foreign owner, as an operator could do by the command SET.
func (s *Store) Steal(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owner, s.node, s.expires = owner, "", time.Now().Add(s.ttl)
}

// Flush empties the store, as FLUSHALL does.
func (s *Store) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.empty()
}

func (s *Store) empty() {
	s.owner, s.node, s.epoch, s.reserved, s.order, s.orderFor = "", "", 0, "", elector.Order{}, ""
	s.freed = time.Time{}
	s.confirmed, s.quarantined = 0, 0
	s.accidents++
}

// Restart imitates a crash and a new start of the store. The store keeps its data only if the argument data is true.
func (s *Store) Restart(data bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.incarnation++
	s.accidents++
	if !data {
		s.empty()
	}
}

// Forge sends the nodes a hint that is not true.
func (s *Store) Forge(h elector.Hint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(h)
}

// Order gives the order o, for example to step down, to the current leader.
func (s *Store) Order(o elector.Order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order, s.orderFor = o, s.owner
	s.tell(elector.HintControl)
}

func (s *Store) tell(h elector.Hint) {
	for _, c := range s.hints {
		select {
		case c <- h:
		default:
		}
	}
}

func (s *Store) expire() {
	if s.owner != "" && !time.Now().Before(s.expires) {
		s.owner, s.node, s.freed = "", "", s.expires.Add(-s.ttl)
	}
}

// quarantines reports whether no new owner may win the lock yet, because a leader that the store has forgotten may still trust its lease.
func (s *Store) quarantines(floor int64) bool {
	if s.confirmed == s.incarnation || s.epoch == 0 && s.quarantined == 0 && floor == 0 {
		return false
	}
	if s.quarantined != s.incarnation {
		s.quarantined, s.quarantine = s.incarnation, time.Now().Add(s.ttl)
	}
	return time.Now().Before(s.quarantine)
}

// Node is the lock of a Store, as one node uses it.
type Node struct {
	store *Store
	id    string
	fault func(op string) Fault
}

var errNoReply = errors.New("fakelock: no reply")

// roundTrip sends one request of a node to the store and returns the reply. The node's fault may delay, lose or refuse the request.
func roundTrip[T any](ctx context.Context, n *Node, op string, apply func() (T, error)) (T, error) {
	type reply struct {
		value T
		err   error
	}
	var zero T
	f := n.fault(op)
	if f.Refuse {
		return zero, elector.ErrRefused
	}
	replies := make(chan reply, 1)
	if !f.LoseRequest {
		go func() {
			time.Sleep(f.Before)
			n.store.mu.Lock()
			n.store.expire()
			v, err := apply()
			n.store.mu.Unlock()
			time.Sleep(f.After)
			if !f.LoseReply {
				replies <- reply{v, err}
			}
		}()
	}
	done := ctx.Done()
	if f.Deaf {
		done = nil
	}
	select {
	case r := <-replies:
		return r.value, r.err
	case <-done:
		return zero, errors.Join(errNoReply, ctx.Err())
	}
}

// Acquire implements elector.Lock.
func (n *Node) Acquire(ctx context.Context, c elector.Candidate) (elector.Answer, error) {
	s := n.store
	return roundTrip(ctx, n, "acquire", func() (elector.Answer, error) {
		switch {
		case s.owner == c.Owner:
			s.expires = time.Now().Add(s.ttl)
			return elector.Answer{Outcome: elector.Won, Epoch: s.epoch}, nil
		case s.owner != "":
			s.quarantines(c.Floor)
			return elector.Answer{Outcome: elector.Held, Holder: s.node, Epoch: s.epoch, Left: time.Until(s.expires)}, nil
		case s.quarantines(c.Floor):
			return elector.Answer{Outcome: elector.Wait, Code: elector.CodeQuarantine, Reason: "in quarantine", Epoch: s.epoch, Left: time.Until(s.quarantine)}, nil
		case c.Observer:
			return elector.Answer{Outcome: elector.Wait, Code: elector.CodeLeft, Reason: "left to others", Epoch: s.epoch, Left: time.Hour}, nil
		case s.reserved != "" && s.reserved != n.id && time.Now().Before(s.until):
			return elector.Answer{Outcome: elector.Wait, Code: elector.CodeReserved, Reason: "reserved for " + s.reserved, Epoch: s.epoch, Left: time.Until(s.until)}, nil
		}
		if kept := s.reserved == n.id && time.Now().Before(s.until); c.Deferring && !kept {
			return elector.Answer{Outcome: elector.Wait, Code: elector.CodeLeft, Reason: "left to others", Epoch: s.epoch, Left: time.Hour}, nil
		}
		if s.confirmed != s.incarnation {
			s.epoch = max(s.epoch, time.Now().UnixMilli())
		}
		s.epoch = max(s.epoch, c.Floor) + 1
		s.confirmed = s.incarnation
		free := time.Duration(0)
		if !s.freed.IsZero() {
			free = time.Since(s.freed)
		}
		s.owner, s.node, s.expires, s.reserved = c.Owner, n.id, time.Now().Add(s.ttl), ""
		s.owners = append(s.owners, c.Owner)
		return elector.Answer{Outcome: elector.Won, Epoch: s.epoch, FreeFor: free}, nil
	})
}

// Renew implements elector.Lock.
func (n *Node) Renew(ctx context.Context, owner string, epoch int64) (elector.Order, error) {
	s := n.store
	s.mu.Lock()
	sent := s.accidents
	s.mu.Unlock()
	return roundTrip(ctx, n, "renew", func() (elector.Order, error) {
		if s.confirmed != s.incarnation && sent != s.accidents {
			// The request was sent before the restart, and others may have led since then. A node that still leads asks again.
			return elector.Order{}, elector.ErrRefused
		}
		if s.owner != owner {
			if s.owner != "" || s.confirmed == s.incarnation || s.epoch > epoch {
				return elector.Order{}, elector.ErrLost
			}
			s.owner, s.node = owner, n.id // the store had lost the term
		}
		s.epoch, s.confirmed = max(s.epoch, epoch), s.incarnation
		s.expires = time.Now().Add(s.ttl)
		if s.orderFor == owner {
			return s.order, nil
		}
		return elector.Order{}, nil
	})
}

// Release implements elector.Lock.
func (n *Node) Release(ctx context.Context, owner string, h elector.Handover) error {
	s := n.store
	_, err := roundTrip(ctx, n, "release", func() (struct{}, error) {
		if s.owner == owner {
			s.owner, s.node, s.freed = "", "", time.Now()
			s.reserved, s.until = h.To, time.Now().Add(elector.ReserveFor)
			s.order, s.orderFor = elector.Order{}, ""
			if h.Event != string(elector.EventWithdrawn) {
				s.tell(elector.HintReleased)
			}
		}
		return struct{}{}, nil
	})
	return err
}

// Raise implements elector.Lock.
func (n *Node) Raise(ctx context.Context, owner string, floor int64) (int64, error) {
	s := n.store
	return roundTrip(ctx, n, "raise", func() (int64, error) {
		if s.owner != owner {
			return 0, elector.ErrLost
		}
		s.epoch = max(s.epoch, floor+1)
		return s.epoch, nil
	})
}
