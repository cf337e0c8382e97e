package hosts

import (
	"strings"
	"testing"
)

// Somebody has broken the configuration while the daemon runs with the old one. When the
// daemon crashes its lock is released all the same, the journal says once at each attempt
// what is wrong, and once it is right the host stands by again by itself.
func TestABrokenFileHoldsNoLockAndIsToldOnceAnAttempt(t *testing.T) {
	s := newSite(t, plan{})
	leader := s.settled()
	old := s.owner()
	good, _ := leader.Read(conffile)
	leader.WriteMode(conffile, good+"jobs:\n- {name: x, schedul: [\n", "0644")
	leader.Must("systemctl", "kill", "--signal=KILL", "--kill-whom=main", unit)
	s.successor(old)
	attempts, told := 0, 0
	s.Await("a second attempt to start", func() bool {
		log := leader.Journal(unit)
		attempts, told = strings.Count(log, "Failed to start"), strings.Count(log, "not YAML")
		return attempts >= 2
	})
	if told < attempts || told > attempts+1 { // another attempt may just have begun
		t.Errorf("%d attempts, told %d times:\n%s", attempts, told, leader.Journal(unit))
	}
	leader.WriteMode(conffile, good, "0644")
	if now := s.settled(); now == leader {
		t.Error("the host with the broken file leads")
	}
}
