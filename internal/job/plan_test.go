package job

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// at is a time of one day, for tables: "10:00:05".
func at(t testing.TB, clock string) time.Time {
	t.Helper()
	if clock == "" {
		return time.Time{}
	}
	parsed, err := time.Parse(time.DateTime, "2026-03-01 "+clock)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func mustParse(t testing.TB, spec string) Schedule {
	t.Helper()
	s, err := ParseSchedule(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// planned is a plan in a form that a table can hold.
type planned struct {
	slot    string
	trigger Trigger
	missed  int
	last    string // of the missed
	next    string
}

func (p plan) flat() planned {
	text := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.Format(time.TimeOnly)
	}
	f := planned{slot: text(p.slot), missed: p.missed.Count, next: text(p.next)}
	if !p.slot.IsZero() {
		f.trigger = p.trigger
	}
	if f.missed > 0 {
		f.last = text(p.missed.Slot)
	}
	return f
}

func TestWhatIsDueByTheWallClock(t *testing.T) {
	fiveSeconds := Job{Schedule: mustParse(t, "@every 5s")}
	hourly := Job{Schedule: mustParse(t, "@hourly")}
	hourlyLatest := Job{Schedule: hourly.Schedule, CatchUp: CatchUpLatest}
	impatient := Job{Schedule: hourly.Schedule, CatchUp: CatchUpLatest, StartingDeadline: 10 * time.Minute}
	for _, c := range []struct {
		name      string
		job       Job
		next, now string
		want      planned
	}{
		{"nothing yet", hourly, "11:00:00", "10:59:59", planned{next: "11:00:00"}},
		{"on the dot", hourly, "11:00:00", "11:00:00", planned{"11:00:00", TriggerSchedule, 0, "", "12:00:00"}},
		{"a little late", hourly, "11:00:00", "11:00:30", planned{"11:00:00", TriggerSchedule, 0, "", "12:00:00"}},
		{"too late", hourly, "11:00:00", "11:00:31", planned{"", "", 1, "11:00:00", "12:00:00"}},
		{"too late, caught up", hourlyLatest, "11:00:00", "11:00:31", planned{"11:00:00", TriggerCatchUp, 0, "", "12:00:00"}},
		{"past its deadline", impatient, "11:00:00", "11:10:01", planned{"", "", 1, "11:00:00", "12:00:00"}},
		{"within its deadline", impatient, "11:00:00", "11:10:00", planned{"11:00:00", TriggerCatchUp, 0, "", "12:00:00"}},
		{"the clock jumps forward", hourlyLatest, "11:00:00", "15:20:00", planned{"15:00:00", TriggerCatchUp, 4, "14:00:00", "16:00:00"}},
		{"the clock jumps forward, none caught up", hourly, "11:00:00", "15:20:00", planned{"", "", 5, "15:00:00", "16:00:00"}},
		{"the clock jumps forward onto a slot", fiveSeconds, "10:00:05", "10:01:00", planned{"10:01:00", TriggerSchedule, 11, "10:00:55", "10:01:05"}},
		{"the clock jumps back", fiveSeconds, "10:00:05", "09:00:00", planned{next: "10:00:05"}},
	} {
		got := planDue(c.job, at(t, c.next), at(t, c.now)).flat()
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(planned{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestWhatATermCatchesUpOn(t *testing.T) {
	hourly := mustParse(t, "@hourly")
	for _, c := range []struct {
		name             string
		job              Job
		last, start, now string
		want             planned
	}{
		{"nothing passed", Job{CatchUp: CatchUpLatest}, "10:00:00", "10:59:59", "11:05:00", planned{}},
		{"one passed", Job{CatchUp: CatchUpLatest}, "10:00:00", "11:30:00", "11:30:01", planned{"11:00:00", TriggerCatchUp, 0, "", ""}},
		{"three passed", Job{CatchUp: CatchUpLatest}, "10:00:00", "13:30:00", "13:30:00", planned{"13:00:00", TriggerCatchUp, 2, "12:00:00", ""}},
		{"the job does not catch up", Job{CatchUp: CatchUpNone}, "10:00:00", "13:30:00", "13:30:00", planned{"", "", 3, "13:00:00", ""}},
		{"not set is none", Job{}, "10:00:00", "11:30:00", "11:30:00", planned{"", "", 1, "11:00:00", ""}},
		{"past the deadline", Job{CatchUp: CatchUpLatest, StartingDeadline: time.Minute}, "10:00:00", "13:02:00", "13:02:00", planned{"", "", 3, "13:00:00", ""}},
		{"within the deadline", Job{CatchUp: CatchUpLatest, StartingDeadline: time.Minute}, "10:00:00", "13:00:30", "13:00:59", planned{"13:00:00", TriggerCatchUp, 2, "12:00:00", ""}},
		{"the deadline counts from now", Job{CatchUp: CatchUpLatest, StartingDeadline: time.Minute}, "10:00:00", "13:00:30", "13:01:01", planned{"", "", 3, "13:00:00", ""}},
		{"the ledger is ahead", Job{CatchUp: CatchUpLatest}, "14:00:00", "13:30:00", "13:30:00", planned{}},
	} {
		c.job.Schedule = hourly
		got := planCatchUp(c.job, at(t, c.last), at(t, c.start), at(t, c.now)).flat()
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(planned{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestCountingAnOutageOfYearsIsBounded(t *testing.T) {
	j := Job{Schedule: mustParse(t, "@every 1s"), CatchUp: CatchUpLatest}
	start := at(t, "10:00:00")
	p := planCatchUp(j, start.AddDate(-20, 0, 0), start, start)
	if !p.slot.Equal(start) || p.missed.Count != maxCounted {
		t.Errorf("got slot %v and %d missed, want %v and %d", p.slot, p.missed.Count, start, maxCounted)
	}
}

// The search by halving finds what a walk over all slots finds.
func TestLatestSlotIsTheLastOfAWalk(t *testing.T) {
	schedules := []Schedule{
		mustParse(t, "@every 7m"), mustParse(t, "*/5 * * * 1"), mustParse(t, "30 2 * * *"), mustParse(t, "* 3 1 * *"), mustParse(t, "@yearly"),
	}
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.SampledFrom(schedules).Draw(rt, "schedule")
		from := time.Unix(rapid.Int64Range(1767225600, 1798761600).Draw(rt, "from"), 0)
		to := from.Add(time.Duration(rapid.Int64Range(-3600, 20*86400).Draw(rt, "seconds")) * time.Second)
		var want time.Time
		for at := s.Next(from); !at.After(to); at = s.Next(at) {
			want = at
		}
		got, ok := latestSlot(s, from, to)
		if !got.Equal(want) || ok == want.IsZero() {
			rt.Fatalf("latest slot after %v up to %v: got %v, want %v", from, to, got, want)
		}
	})
}

func TestOnlyAJumpOfTheClockIsAJump(t *testing.T) {
	for _, c := range []struct {
		wall, elapsed, by time.Duration
		jumped            bool
	}{
		{10 * time.Second, 10 * time.Second, 0, false},
		{10*time.Second + 900*time.Millisecond, 10 * time.Second, 900 * time.Millisecond, false},
		{time.Hour, 10 * time.Second, time.Hour - 10*time.Second, true},
		{-time.Hour, 10 * time.Second, -time.Hour - 10*time.Second, true},
	} {
		if by, jumped := clockJump(c.wall, c.elapsed); by != c.by || jumped != c.jumped {
			t.Errorf("%v on the wall in %v: got %v, %v; want %v, %v", c.wall, c.elapsed, by, jumped, c.by, c.jumped)
		}
	}
}

func TestLongErrorTextIsClipped(t *testing.T) {
	got := clip(strings.Repeat("ä", maxError))
	if len(got) > maxError+len("…") || !strings.HasSuffix(got, "…") || strings.ToValidUTF8(got, "") != got {
		t.Errorf("got %d bytes ending in %q", len(got), got[len(got)-8:])
	}
}
