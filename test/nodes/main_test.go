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

// ttl is a lease that a process keeps although others want the processors.
var ttl = testsupport.Paced(2 * time.Second).Round(100 * time.Millisecond)

// grace is what an event may come late among other tests: by much less than the lease that it
// must not wait for.
func grace() time.Duration { return ttl / 2 }

// effort is how much a test that measures does: 1 in an ordinary run, where other
// tests share the machine and limits are doubled; more when asked by the
// environment, which then also holds it to the limits themselves.
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
