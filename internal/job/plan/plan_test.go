package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"baton/internal/job/schedule"
)

// at returns a time of a fixed day, for tables: "10:00:05".
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

func mustParse(t testing.TB, spec string) schedule.Schedule {
	t.Helper()
	s, err := schedule.Parse(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const caughtUp = "caught up"

// planned is a Decision in a form that a table can hold.
type planned struct {
	slot   string
	how    string // empty: the slot runs on schedule, or not at all
	missed int
	last   string // the last missed slot
	next   string
}

func (p Decision) flat() planned {
	text := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.Format(time.TimeOnly)
	}
	f := planned{slot: text(p.Slot), missed: p.Missed.Count, next: text(p.Next)}
	if !p.Slot.IsZero() && p.CaughtUp {
		f.how = caughtUp
	}
	if f.missed > 0 {
		f.last = text(p.Missed.Slot)
	}
	return f
}

func TestWhatIsDueByTheWallClock(t *testing.T) {
	fiveSeconds := Policy{Schedule: mustParse(t, "@every 5s")}
	hourly := Policy{Schedule: mustParse(t, "@hourly")}
	hourlyLatest := Policy{Schedule: hourly.Schedule, CatchUp: CatchUpLatest}
	impatient := Policy{Schedule: hourly.Schedule, CatchUp: CatchUpLatest, StartingDeadline: 10 * time.Minute}
	for _, c := range []struct {
		name      string
		policy    Policy
		next, now string
		want      planned
	}{
		{"nothing yet", hourly, "11:00:00", "10:59:59", planned{next: "11:00:00"}},
		{"on the dot", hourly, "11:00:00", "11:00:00", planned{"11:00:00", "", 0, "", "12:00:00"}},
		{"a little late", hourly, "11:00:00", "11:00:30", planned{"11:00:00", "", 0, "", "12:00:00"}},
		{"too late", hourly, "11:00:00", "11:00:31", planned{"", "", 1, "11:00:00", "12:00:00"}},
		{"too late, caught up", hourlyLatest, "11:00:00", "11:00:31", planned{"11:00:00", caughtUp, 0, "", "12:00:00"}},
		{"past its deadline", impatient, "11:00:00", "11:10:01", planned{"", "", 1, "11:00:00", "12:00:00"}},
		{"within its deadline", impatient, "11:00:00", "11:10:00", planned{"11:00:00", caughtUp, 0, "", "12:00:00"}},
		{"the clock jumps forward", hourlyLatest, "11:00:00", "15:20:00", planned{"15:00:00", caughtUp, 4, "14:00:00", "16:00:00"}},
		{"the clock jumps forward, none caught up", hourly, "11:00:00", "15:20:00", planned{"", "", 5, "15:00:00", "16:00:00"}},
		{"the clock jumps forward onto a slot", fiveSeconds, "10:00:05", "10:01:00", planned{"10:01:00", "", 11, "10:00:55", "10:01:05"}},
		{"the clock jumps back", fiveSeconds, "10:00:05", "09:00:00", planned{next: "10:00:05"}},
	} {
		got := Now(c.policy, at(t, c.next), at(t, c.now)).flat()
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(planned{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestWhatATermCatchesUpOn(t *testing.T) {
	hourly := mustParse(t, "@hourly")
	for _, c := range []struct {
		name             string
		policy           Policy
		last, start, now string
		want             planned
	}{
		{"nothing passed", Policy{CatchUp: CatchUpLatest}, "10:00:00", "10:59:59", "11:05:00", planned{}},
		{"one passed", Policy{CatchUp: CatchUpLatest}, "10:00:00", "11:30:00", "11:30:01", planned{"11:00:00", caughtUp, 0, "", ""}},
		{"three passed", Policy{CatchUp: CatchUpLatest}, "10:00:00", "13:30:00", "13:30:00",
			planned{"13:00:00", caughtUp, 2, "12:00:00", ""}},
		{"the job does not catch up", Policy{CatchUp: CatchUpNone}, "10:00:00", "13:30:00", "13:30:00", planned{"", "", 3, "13:00:00", ""}},
		{"not set is none", Policy{}, "10:00:00", "11:30:00", "11:30:00", planned{"", "", 1, "11:00:00", ""}},
		{
			"past the deadline", Policy{CatchUp: CatchUpLatest, StartingDeadline: time.Minute},
			"10:00:00", "13:02:00", "13:02:00", planned{"", "", 3, "13:00:00", ""},
		},
		{
			"within the deadline", Policy{CatchUp: CatchUpLatest, StartingDeadline: time.Minute},
			"10:00:00", "13:00:30", "13:00:59", planned{"13:00:00", caughtUp, 2, "12:00:00", ""},
		},
		{
			"the deadline counts from now", Policy{CatchUp: CatchUpLatest, StartingDeadline: time.Minute},
			"10:00:00", "13:00:30", "13:01:01", planned{"", "", 3, "13:00:00", ""},
		},
		{"the ledger is ahead", Policy{CatchUp: CatchUpLatest}, "14:00:00", "13:30:00", "13:30:00", planned{}},
	} {
		c.policy.Schedule = hourly
		got := AtStart(c.policy, at(t, c.last), at(t, c.start), at(t, c.now)).flat()
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(planned{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestCountingAnOutageOfYearsIsBounded(t *testing.T) {
	p := Policy{Schedule: mustParse(t, "@every 1s"), CatchUp: CatchUpLatest}
	start := at(t, "10:00:00")
	got := AtStart(p, start.AddDate(-20, 0, 0), start, start)
	if !got.Slot.Equal(start) || got.Missed.Count != MaxCounted {
		t.Errorf("got slot %v and %d missed, want %v and %d", got.Slot, got.Missed.Count, start, MaxCounted)
	}
}
