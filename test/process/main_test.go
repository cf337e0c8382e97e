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

// ttl is a lease that a process keeps although others want the processors.
var ttl = testsupport.Paced(2 * time.Second).Round(100 * time.Millisecond)
