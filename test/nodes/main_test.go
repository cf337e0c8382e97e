// Package nodes tests whole nodes over time, as operators meet them: failovers, outages, pauses,
// bad tables and notifications, in real processes, with real servers and real signals.
package nodes

import (
	"os"
	"strconv"
	"testing"
	"time"

	"baton/internal/testsupport"
)

func TestMain(m *testing.M) {
	testsupport.AtOnce(6)
	testsupport.Main(m)
}

// soon is generous: two cores may run everything at once.
const soon = time.Minute

// ttl is a lease that a process keeps although others want the processors. Tests that wait for
// its end count in heartbeats, see pulse.
const ttl = 10 * time.Second

// untilReleased is a lease that no test waits for: another node can only lead once the last
// leader has released the lock.
const untilReleased = time.Hour

// aMeasuredLease is short, for figures: where nothing else runs, a process keeps it.
const aMeasuredLease = 2 * time.Second

// effort is how much a test that measures does: little in an ordinary run, where other
// tests share the machine and only the order of events is judged. The environment asks for
// more, and has times held to their limits.
func effort(t *testing.T, name string, ordinary int) (n int, strict bool) {
	t.Helper()
	text, strict := os.LookupEnv(name)
	if !strict {
		return ordinary, false
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("$%s is %q: want a positive number", name, text)
	}
	return n, true
}
