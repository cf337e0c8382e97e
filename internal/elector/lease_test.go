package elector

import (
	"testing"
	"time"

	"baton/internal/heartbeat"
)

func TestALeaseThatWasSeenOnceLapses(t *testing.T) {
	at := func(d time.Duration) heartbeat.Instant { return heartbeat.Instant(0).Add(time.Hour + d) }
	known := lastLease{length: 30 * time.Second} // from the time before the process began
	for i, step := range []struct {
		after, heard, want time.Duration
	}{
		{0, 0, 30 * time.Second},                          // the lease of another program's lock is unknown
		{time.Minute, time.Second, 30 * time.Second},      // the leader of the lock may have renewed until now
		{80 * time.Second, time.Second, 30 * time.Second}, // not yet as long as the lease
		{90 * time.Second, time.Second, time.Second},      // the lease would have ended
		{91 * time.Second, time.Hour, time.Hour},          // an operator tries a long lease
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
