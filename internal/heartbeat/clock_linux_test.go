package heartbeat

import (
	"testing"

	"golang.org/x/sys/unix"
)

// On a machine that was never suspended, a clock that stops during suspend shows the same time.
func TestTheClockIsTheOneThatGoesOnInSuspend(t *testing.T) {
	if clockBoottime != unix.CLOCK_BOOTTIME {
		t.Errorf("clock %d is read, want CLOCK_BOOTTIME", clockBoottime)
	}
}
