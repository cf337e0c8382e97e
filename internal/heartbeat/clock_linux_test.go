package heartbeat

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Where a machine was never suspended, the clock that stands still meanwhile reads the same.
func TestTheClockIsTheOneThatGoesOnInSuspend(t *testing.T) {
	if clockBoottime != unix.CLOCK_BOOTTIME {
		t.Errorf("clock %d is read, want CLOCK_BOOTTIME", clockBoottime)
	}
}
