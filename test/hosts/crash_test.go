package hosts

import (
	"syscall"
	"testing"
	"time"
)

// The lease has most of its 30 s left when the leader dies; the other host does not wait
// for it.
func TestAKilledLeaderIsSucceededInMilliseconds(t *testing.T) {
	s := newSite(t, plan{})
	m := measure{what: "kill -9 of the leader, ttl 30s → the other host has the lock", limit: 250 * time.Millisecond}
	for range 8 {
		leader := s.settled()
		old, pid := s.owner(), leader.MainPid(unit)
		killed := time.Now()
		leader.Signal(pid, syscall.SIGKILL)
		m.add(s.successor(old).Sub(killed))
		if now := s.settled(); now == leader {
			t.Errorf("%s succeeded itself", leader.Name)
		}
		if pid == leader.MainPid(unit) {
			t.Error("the killed process is alive")
		}
	}
	m.report(t)
}

func TestAFrozenDaemonIsEndedByTheWatchdogAndSucceeded(t *testing.T) {
	const watchdog = 2 * time.Second
	s := newSite(t, plan{dropIn: "[Service]\nWatchdogSec=2s\n"})
	leader := s.settled()
	old, pid := s.owner(), leader.MainPid(unit)
	m := measure{what: "SIGSTOP of the leader, WatchdogSec=2s → the other host has the lock", limit: watchdog + 500*time.Millisecond}
	frozen := time.Now()
	leader.Signal(pid, syscall.SIGSTOP)
	m.add(s.successor(old).Sub(frozen))
	m.report(t)
	if now := s.settled(); now == leader { // it is back, as a standby
		t.Error("the frozen host leads")
	}
	if n := leader.Property(unit, "NRestarts"); n != "1" {
		t.Errorf("it was restarted %s times", n)
	}
	leader.Shell("journalctl --no-pager -u baton.service | grep -q 'Watchdog timeout'")
}

// While a daemon cannot reach Redis the watchdog is content with it.
func TestTheWatchdogDoesNotMindThatRedisIsAway(t *testing.T) {
	s := newSite(t, plan{hosts: 1, dropIn: "[Service]\nWatchdogSec=3s\n", ttl: 2 * time.Second})
	h := s.hosts[0]
	pid := h.MainPid(unit)
	s.Net.Unplug("redis")
	time.Sleep(9 * time.Second) // four times the lease, three times the watchdog's time
	s.Net.Plug("redis")
	s.settled()
	if now := h.MainPid(unit); now != pid {
		t.Errorf("process %d has become %d", pid, now)
	}
}
