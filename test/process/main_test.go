// Package process tests the program as operators meet it: the commands that nodes run, and
// baton lock, in real processes, with real signals.
package process

import (
	"testing"
	"time"

	"baton/internal/testsupport"
)

func TestMain(m *testing.M) {
	testsupport.AtOnce(6)
	testsupport.Main(m)
}

const lockKey = "baton"

// soon is generous: two cores may run everything at once.
const soon = time.Minute

// ttl is a lease that a process keeps although others want the processors: for tests of what is
// done before a lease ends.
const ttl = 10 * time.Second

// untilLost is a lease that no test waits for: what ends before it ends for another reason.
const untilLost = time.Hour
