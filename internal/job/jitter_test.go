package job_test

import (
	"fmt"
	"testing"
	"time"

	"baton/internal/job"
)

func TestOffsetIsStableAndSpreadOverTheJitter(t *testing.T) {
	// What is written here is in force on running hosts: during a rolling upgrade two
	// versions must agree.
	for name, want := range map[string]time.Duration{"report": 9*time.Second + 909*time.Millisecond, "users": 515 * time.Millisecond} {
		if got := job.Offset(name, time.Minute); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	tenths := make([]int, 10)
	for i := range 1000 {
		at := job.Offset(fmt.Sprintf("job-%d", i), time.Minute)
		if at < 0 || at >= time.Minute || at%time.Millisecond != 0 {
			t.Fatalf("job-%d: %v", i, at)
		}
		tenths[at/(6*time.Second)]++
	}
	for _, n := range tenths {
		if n < 60 || n > 140 {
			t.Errorf("1000 names over ten parts: %v", tenths)
			break
		}
	}
	for _, jitter := range []time.Duration{0, time.Microsecond, time.Millisecond} {
		if got := job.Offset("report", jitter); got != 0 {
			t.Errorf("jitter %v: %v", jitter, got)
		}
	}
}
