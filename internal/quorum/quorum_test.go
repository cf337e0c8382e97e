package quorum_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/quorum"
	"baton/internal/testsupport/fakelock"
	"baton/internal/testsupport/locktest"
)

// masters are stores in memory. No store knows of the others.
type masters []*fakelock.Store

func newMasters(n int, ttl time.Duration) masters {
	var m masters
	for range n {
		m = append(m, fakelock.NewStore(ttl))
	}
	return m
}

// lock returns the lock made of all masters, as node id sees it. fault is called for every request to a master. nil means no faults.
func (m masters) lock(t testing.TB, id string, ttl time.Duration, fault func(master int, op string) fakelock.Fault) *quorum.Lock {
	t.Helper()
	var locks []elector.Lock
	for i, s := range m {
		f := func(string) fakelock.Fault { return fakelock.Fault{} }
		if fault != nil {
			f = func(op string) fakelock.Fault { return fault(i, op) }
		}
		locks = append(locks, s.Node(id, f))
	}
	return newLock(t, id, locks, quorum.Options{TTL: ttl})
}

func newLock(t testing.TB, id string, locks []elector.Lock, o quorum.Options) *quorum.Lock {
	t.Helper()
	var fresh atomic.Int64
	o.NewOwner = func() (string, error) { return fmt.Sprintf("%s-fresh-%d", id, fresh.Add(1)), nil }
	l, err := quorum.New(locks, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (m masters) flush() {
	for _, s := range m {
		s.Flush()
	}
}

func (m masters) order(o elector.Order) {
	for _, s := range m {
		s.Order(o)
	}
}

// held returns the number of masters at which the owner holds the lock.
func (m masters) held(owner string) int {
	n := 0
	for _, s := range m {
		if o, _ := s.Holder(); o == owner {
			n++
		}
	}
	return n
}

func TestQuorumOfFakesConforms(t *testing.T) {
	for _, n := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("%d masters", n), func(t *testing.T) {
			locktest.RunInBubble(t, func(t *testing.T) locktest.Harness {
				const ttl = 200 * time.Millisecond
				m := newMasters(n, ttl)
				return locktest.Harness{
					TTL: ttl, A: m.lock(t, "a", ttl, nil), B: m.lock(t, "b", ttl, nil), C: m.lock(t, "c", ttl, nil),
					Flush: m.flush, Sleep: time.Sleep,
					StepDown: func(to, reason string) error {
						m.order(elector.Order{StepDown: true, To: to, Reason: reason})
						return nil
					},
				}
			})
		})
	}
}
