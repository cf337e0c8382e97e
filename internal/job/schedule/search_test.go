package schedule_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"baton/internal/job/schedule"
)

// The search by halving finds what a walk over all slots finds.
func TestLatestSlotIsTheLastOfAWalk(t *testing.T) {
	schedules := []schedule.Schedule{
		parse(t, "@every 7m", nil), parse(t, "*/5 * * * 1", nil), parse(t, "30 2 * * *", nil), parse(t, "* 3 1 * *", nil),
		parse(t, "@yearly", nil),
	}
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.SampledFrom(schedules).Draw(rt, "schedule")
		from := time.Unix(rapid.Int64Range(1767225600, 1798761600).Draw(rt, "from"), 0)
		to := from.Add(time.Duration(rapid.Int64Range(-3600, 20*86400).Draw(rt, "seconds")) * time.Second)
		var want time.Time
		for at := s.Next(from); !at.After(to); at = s.Next(at) {
			want = at
		}
		got, ok := schedule.Latest(s, from, to)
		if !got.Equal(want) || ok == want.IsZero() {
			rt.Fatalf("latest slot after %v up to %v: got %v, want %v", from, to, got, want)
		}
	})
}
