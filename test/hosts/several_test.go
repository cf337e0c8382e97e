package hosts

import (
	"syscall"
	"testing"
	"time"

	lab "baton/internal/testsupport/hosts"
)

const severalJobs = `jobs:
- {name: first, schedule: "@every 1s", command: [/bin/true]}
- {name: second, lock: ` + eastLock + `, schedule: "@every 1s", command: [/bin/true]}
`

// Of two locks each host leads one. When one host's daemon dies, the other takes its lock
// at once, though it leads its share, and even though it was ordered to step down a moment
// before: nobody is left to leave the lock to.
func TestWhoLeadsOneOfTwoLocksIsSucceededInMilliseconds(t *testing.T) {
	s := newSite(t, plan{several: true, config: severalJobs})
	m := measure{what: "kill -9 of who leads one of two locks, ttl 30s → the other leads both", limit: 250 * time.Millisecond}
	ordered := measure{what: "  the same, the other having stepped down by order before", limit: 250 * time.Millisecond}
	left := measure{what: "  of which from the release to the next term", limit: 100 * time.Millisecond}
	for round := range 8 {
		handedOver := s.apart()
		// Each asks who leads every two seconds, if it was not told, and looks around as often.
		time.Sleep(4500 * time.Millisecond)
		lock, dead, to := eastLock, s.leads(eastLock), &ordered
		if round%2 == 1 { // who was ordered dies
			lock, dead, to = lockKey, handedOver, &m
		}
		old, epoch, pid := s.ownerOf(lock), s.epochOf(lock), dead.MainPid(unit)
		killed := time.Now()
		dead.Signal(pid, syscall.SIGKILL)
		led := s.successorOf(lock, old)
		to.add(led.Sub(killed))
		left.add(led.Sub(s.releasedAtOf(lock, epoch).Add(-time.Millisecond)))
		s.Await("the other to lead both", func() bool { return s.leads(lock) == s.other(dead) })
	}
	m.report(t)
	ordered.report(t)
	left.report(t)
}

// apart has each host lead one lock, and returns the one that handed the other over.
func (s *site) apart() (handedOver *lab.Host) {
	s.t.Helper()
	s.Await("both locks to be led", func() bool { return s.leads(lockKey) != nil && s.leads(eastLock) != nil })
	handedOver = s.leads(lockKey)
	other := s.other(handedOver)
	s.Await("each host to lead one lock", func() bool {
		if s.leads(eastLock) == handedOver { // refused while the other is not back
			handedOver.Run("baton", "stepdown", "--lock-key", eastLock, "--to", other.Name)
		}
		return s.leads(lockKey) == handedOver && s.leads(eastLock) == other
	})
	// Whoever dies as it wins has not noted yet what to release.
	s.Await("notes of both terms", func() bool {
		return handedOver.Run("test", "-e", "/run/baton/lease.json").Code == 0 && other.Run("sh", "-c", "test -e /run/baton/lease-*.json").Code == 0
	})
	return handedOver
}

// leads is the host that leads a lock; nil if none does.
func (s *site) leads(lock string) *lab.Host {
	s.t.Helper()
	name := s.leaderNameOf(lock)
	for _, h := range s.hosts {
		if h.Name == name {
			return h
		}
	}
	return nil
}
