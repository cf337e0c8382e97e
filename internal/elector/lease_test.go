package elector

import (
	"testing"
	"time"

	"baton/internal/heartbeat"
)

func TestALeaseThatWasSeenOnceLapses(t *testing.T) {
	at := func(d time.Duration) heartbeat.Instant { return heartbeat.Instant(0).Add(time.Hour + d) }
	known := lastLease{length: 30 * time.Second} // from before the process began
	for i, step := range []struct {
		after, heard, want time.Duration
	}{
		{0, 0, 30 * time.Second},                          // of another program's lock nothing is told
		{time.Minute, time.Second, 30 * time.Second},      // its leader may have renewed until now
		{80 * time.Second, time.Second, 30 * time.Second}, // not for as long yet
		{90 * time.Second, time.Second, time.Second},      // it would have ended
		{91 * time.Second, time.Hour, time.Hour},          // somebody tries a long one
		{92 * time.Second, time.Hour, time.Hour},          // and renews
		{92*time.Second + time.Hour - 1, 10 * time.Second, time.Hour},
		{92*time.Second + time.Hour, 10 * time.Second, 10 * time.Second},
	} {
		known.heard(step.heard, at(step.after))
		if known.length != step.want {
			t.Errorf("step %d: %v, want %v", i, known.length, step.want)
		}
	}
}
