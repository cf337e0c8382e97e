package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"baton/internal/job/schedule"
)

// annotated formats slots in the form that the tests below expect.
func annotated(slots []schedule.Slot) []string {
	list := make([]string, len(slots))
	for i, s := range slots {
		list[i] = strings.TrimSpace(s.At.Format(short) + " " + s.Note)
	}
	return list
}

func TestUpcomingSlotsSayWhatTheClockDoes(t *testing.T) {
	for _, c := range []struct {
		name, spec, zone, after string
		want                    []string
	}{
		{"put forward", "30 2 * * *", "Europe/Berlin", "2026-03-28T02:30:00+01:00", []string{
			"2026-03-29T03:00:00+02:00 the clock is put forward: 02:30 does not exist, runs at 03:00", "2026-03-30T02:30:00+02:00"}},
		{"two in the gap and one after it", "0,30 2-3 * * *", "Europe/Berlin", "2026-03-29T00:00:00+01:00", []string{
			"2026-03-29T03:00:00+02:00 the clock is put forward: 02:00 and 02:30 do not exist, runs once at 03:00",
			"2026-03-29T03:30:00+02:00"}},
		{"many in the gap", "*/5 2 * * *", "Australia/Lord_Howe", "2026-10-03T02:55:00+10:30", []string{
			"2026-10-04T02:30:00+11:00 the clock is put forward: 02:00 to 02:25, 6 slots, do not exist, runs once at 02:30",
			"2026-10-04T02:35:00+11:00"}},
		{"after the gap", "0 3 * * *", "Europe/Berlin", "2026-03-28T12:00:00+01:00", []string{"2026-03-29T03:00:00+02:00"}},
		{"a day that does not exist", "30 12 * * *", "Pacific/Apia", "2011-12-29T12:30:00-10:00", []string{
			"2011-12-31T00:00:00+14:00 the clock is put forward: 2011-12-30 12:30 does not exist, runs at 00:00",
			"2011-12-31T12:30:00+14:00"}},
		{"put back", "30 2 * * *", "Europe/Berlin", "2026-10-24T02:30:00+02:00", []string{
			"2026-10-25T02:30:00+02:00 the clock is put back: 02:30 comes twice, runs the first time", "2026-10-26T02:30:00+01:00"}},
		{"before and after the overlap", "59 1,3 * * *", "Europe/Berlin", "2026-10-25T00:00:00+02:00",
			[]string{"2026-10-25T01:59:00+02:00", "2026-10-25T03:59:00+01:00"}},
		{"every hour, put forward", "30 * * * *", "Europe/Berlin", "2026-03-29T01:00:00+01:00", []string{
			"2026-03-29T01:30:00+01:00", "2026-03-29T03:30:00+02:00 the clock is put forward: 02:30 does not exist",
			"2026-03-29T04:30:00+02:00"}},
		{"every hour, put back", "@hourly", "Europe/Berlin", "2026-10-25T01:30:00+02:00", []string{
			"2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00 the clock was put back: 02:00 for the second time",
			"2026-10-25T03:00:00+01:00"}},
		{"no clock is put anywhere", "30 2 * * *", "Asia/Shanghai", "2026-03-28T12:00:00+08:00", []string{"2026-03-29T02:30:00+08:00"}},
		{"an interval", "@every 1h", "Europe/Berlin", "2026-03-29T01:30:00+01:00", []string{"2026-03-29T03:00:00+02:00"}},
		{"all the time", "@always", "UTC", "2026-03-29T01:30:00Z", []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			after, err := time.Parse(short, c.after)
			if err != nil {
				t.Fatal(err)
			}
			got := annotated(schedule.Upcoming(parse(t, c.spec, zone(t, c.zone)), after, max(1, len(c.want))))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestShiftsAreThoseOfAYear(t *testing.T) {
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	forward := "2026-03-29T03:00:00+02:00 the clock is put forward: 02:30 does not exist, runs at 03:00"
	back := "2026-10-25T02:30:00+02:00 the clock is put back: 02:30 comes twice, runs the first time"
	for _, c := range []struct {
		name, spec, zone string
		from             time.Time
		want             []string
	}{
		{"each night", "30 2 * * *", "Europe/Berlin", from, []string{forward, back}},
		{"behind the first", "30 2 * * *", "Europe/Berlin", time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC),
			[]string{back, "2027-03-28" + strings.TrimPrefix(forward, "2026-03-29")}},
		{"between the two passes", "30 2 * * *", "Europe/Berlin", time.Date(2026, 10, 25, 0, 45, 0, 0, time.UTC),
			[]string{"2027-03-28" + strings.TrimPrefix(forward, "2026-03-29")}},
		{"not on these nights", "30 2 * * 3", "Europe/Berlin", from, []string{}},
		{"not at that hour", "30 4 * * *", "Europe/Berlin", from, []string{}},
		{"every hour", "30 * * * *", "Europe/Berlin", from, []string{}},
		{"no such clock", "30 2 * * *", "UTC", from, []string{}},
		{"an interval", "@every 1h", "Europe/Berlin", from, []string{}},
	} {
		got := annotated(schedule.Shifts(parse(t, c.spec, zone(t, c.zone)), c.from, c.from.AddDate(1, 0, 0)))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestIntervalIsTheShortestBetweenTwoSlots(t *testing.T) {
	for spec, want := range map[string]time.Duration{
		"@every 7s": 7 * time.Second, "@always": 0, "* * * * *": time.Minute, "*/45 * * * *": 15 * time.Minute, "0,59 * * * *": time.Minute,
		"30 2 * * *": 24 * time.Hour, "0 0 * * 1": 7 * 24 * time.Hour, "0 0 1 * *": 28 * 24 * time.Hour, "0 0 29 2 *": 366 * 24 * time.Hour,
		"*/10 6 * * *": 10 * time.Minute, "0 0 13 * 5": 24 * time.Hour, "0,1 0 24 12 *": time.Minute,
	} {
		if got := schedule.Interval(parse(t, spec, nil)); got != want {
			t.Errorf("%s: %v, want %v", spec, got, want)
		}
	}
}
