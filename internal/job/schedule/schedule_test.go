package schedule_test

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the zones must be the same on every machine

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"baton/internal/job/schedule"
)

const layout = "2006-01-02 15:04:05 -0700"

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func parse(t testing.TB, spec string, loc *time.Location) schedule.Schedule {
	t.Helper()
	s, err := schedule.Parse(spec, loc)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func instant(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(layout, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestSlotsOfACalendar(t *testing.T) {
	for _, c := range []struct {
		name, spec, zone, after string
		want                    []string
	}{
		{"every quarter of an hour", "*/15 * * * *", "UTC", "2026-03-01 10:07:30 +0000",
			[]string{"2026-03-01 10:15:00 +0000", "2026-03-01 10:30:00 +0000"}},
		{"a slot is not its own successor", "30 2 * * *", "UTC", "2026-03-01 02:30:00 +0000",
			[]string{"2026-03-02 02:30:00 +0000"}},
		{"in the job's zone", "30 2 * * *", "Asia/Shanghai", "2026-03-01 00:00:00 +0000",
			[]string{"2026-03-02 02:30:00 +0800"}},
		{"leap day", "0 0 29 2 *", "UTC", "2026-01-01 00:00:00 +0000",
			[]string{"2028-02-29 00:00:00 +0000", "2032-02-29 00:00:00 +0000"}},
		{"leap day around 2100", "0 0 29 2 *", "UTC", "2096-02-29 00:00:00 +0000",
			[]string{"2104-02-29 00:00:00 +0000"}},
		{"months without a 31st are left out", "0 12 31 * *", "UTC", "2026-01-31 12:00:00 +0000",
			[]string{"2026-03-31 12:00:00 +0000", "2026-05-31 12:00:00 +0000"}},
		{"last minute of a year", "59 23 31 12 *", "UTC", "2026-12-31 23:58:59 +0000",
			[]string{"2026-12-31 23:59:00 +0000", "2027-12-31 23:59:00 +0000"}},
		{"Sunday as 7", "0 0 * * 7", "UTC", "2026-03-02 00:00:00 +0000", []string{"2026-03-08 00:00:00 +0000"}},
		{"a range that ends on Sunday", "0 0 * * sat-sun", "UTC", "2026-03-02 00:00:00 +0000",
			[]string{"2026-03-07 00:00:00 +0000", "2026-03-08 00:00:00 +0000", "2026-03-14 00:00:00 +0000"}},
		{"a stepped range that ends on 7", "0 0 * * 5-7/2", "UTC", "2026-03-02 00:00:00 +0000",
			[]string{"2026-03-06 00:00:00 +0000", "2026-03-08 00:00:00 +0000", "2026-03-13 00:00:00 +0000"}},
		{"day of month or day of week", "0 0 13 * 5", "UTC", "2026-03-07 00:00:00 +0000",
			[]string{"2026-03-13 00:00:00 +0000", "2026-03-20 00:00:00 +0000"}},
		{"descriptor", "@daily", "Europe/Berlin", "2026-03-01 12:00:00 +0100", []string{"2026-03-02 00:00:00 +0100"}},
	} {
		t.Run(c.name, func(t *testing.T) { checkSlots(t, c.spec, c.zone, c.after, c.want) })
	}
}

// The clocks change as follows: Berlin +1 → +2 on 2026-03-29 at 02:00 and back on 2026-10-25 at 03:00; New York -5 → -4 on 2026-03-08
// at 02:00 and back on 2026-11-01 at 02:00; Lord Howe +11 → +10:30 on 2026-04-05 at 02:00 and back on 2026-10-04 at 02:00.
func TestSlotsWhereClocksChange(t *testing.T) {
	for _, c := range []struct {
		name, spec, zone, after string
		want                    []string
	}{
		{"in the gap: right after it", "30 2 * * *", "Europe/Berlin", "2026-03-28 12:00:00 +0100",
			[]string{"2026-03-29 03:00:00 +0200", "2026-03-30 02:30:00 +0200"}},
		{"several in the gap: once", "*/15 2 * * *", "Europe/Berlin", "2026-03-28 12:00:00 +0100",
			[]string{"2026-03-29 03:00:00 +0200", "2026-03-30 02:00:00 +0200"}},
		{"in the gap and at its end: once", "0,30 2,3 * * *", "Europe/Berlin", "2026-03-28 12:00:00 +0100",
			[]string{"2026-03-29 03:00:00 +0200", "2026-03-29 03:30:00 +0200"}},
		{"gap in New York", "30 2 * * *", "America/New_York", "2026-03-07 12:00:00 -0500",
			[]string{"2026-03-08 03:00:00 -0400", "2026-03-09 02:30:00 -0400"}},
		{"gap of half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03 12:00:00 +1030",
			[]string{"2026-10-04 02:30:00 +1100", "2026-10-05 02:15:00 +1100"}},
		{"after a gap of half an hour", "45 2 * * *", "Australia/Lord_Howe", "2026-10-03 12:00:00 +1030",
			[]string{"2026-10-04 02:45:00 +1100"}},
		{"midnight in the gap", "@daily", "America/Asuncion", "2023-09-30 12:00:00 -0400",
			[]string{"2023-10-01 01:00:00 -0300", "2023-10-02 00:00:00 -0300"}},
		{"a day that does not exist", "30 12 * * *", "Pacific/Apia", "2011-12-29 13:00:00 -1000",
			[]string{"2011-12-31 00:00:00 +1400", "2011-12-31 12:30:00 +1400"}},
		{"repeated: the first time only", "30 2 * * *", "Europe/Berlin", "2026-10-24 12:00:00 +0200",
			[]string{"2026-10-25 02:30:00 +0200", "2026-10-26 02:30:00 +0100"}},
		{"asked between the two passes", "30 2 * * *", "Europe/Berlin", "2026-10-25 02:10:00 +0100",
			[]string{"2026-10-26 02:30:00 +0100"}},
		{"repeated in New York", "30 1 * * *", "America/New_York", "2026-10-31 12:00:00 -0400",
			[]string{"2026-11-01 01:30:00 -0400", "2026-11-02 01:30:00 -0500"}},
		{"repeated half an hour", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04 12:00:00 +1100",
			[]string{"2026-04-05 01:45:00 +1100", "2026-04-06 01:45:00 +1030"}},
		{"midnight repeated", "@daily", "America/Havana", "2026-10-31 12:00:00 -0400",
			[]string{"2026-11-01 00:00:00 -0400", "2026-11-02 00:00:00 -0500"}},
		{"every hour has none in the gap", "30 * * * *", "Europe/Berlin", "2026-03-29 01:00:00 +0100",
			[]string{"2026-03-29 01:30:00 +0100", "2026-03-29 03:30:00 +0200"}},
		{"every hour at the end of the gap", "@hourly", "Europe/Berlin", "2026-03-29 01:30:00 +0100",
			[]string{"2026-03-29 03:00:00 +0200", "2026-03-29 04:00:00 +0200"}},
		{"every hour in both passes", "30 * * * *", "Europe/Berlin", "2026-10-25 01:45:00 +0200",
			[]string{"2026-10-25 02:30:00 +0200", "2026-10-25 02:30:00 +0100", "2026-10-25 03:30:00 +0100"}},
		{"every hour, spelt out", "0 0-23 * * *", "America/New_York", "2026-11-01 00:30:00 -0400",
			[]string{"2026-11-01 01:00:00 -0400", "2026-11-01 01:00:00 -0500", "2026-11-01 02:00:00 -0500"}},
		{"every quarter in both passes of half an hour", "*/15 * * * *", "Australia/Lord_Howe", "2026-04-05 01:30:00 +1100",
			[]string{"2026-04-05 01:45:00 +1100", "2026-04-05 01:30:00 +1030", "2026-04-05 01:45:00 +1030", "2026-04-05 02:00:00 +1030"}},
	} {
		t.Run(c.name, func(t *testing.T) { checkSlots(t, c.spec, c.zone, c.after, c.want) })
	}
}

func checkSlots(t *testing.T, spec, zoneName, after string, want []string) {
	t.Helper()
	s := parse(t, spec, zone(t, zoneName))
	at := instant(t, after)
	var got []string
	for range want {
		at = s.Next(at)
		got = append(got, at.Format(layout))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("slots of %q (-want +got):\n%s", spec, diff)
	}
}

func TestEveryKeepsItsPhase(t *testing.T) {
	for _, c := range []struct{ spec, after, want string }{
		{"@every 5s", "2026-03-01T10:00:00Z", "2026-03-01T10:00:05Z"},
		{"@every 5s", "2026-03-01T10:00:04.999999999Z", "2026-03-01T10:00:05Z"},
		{"@every 7s", "1970-01-01T00:00:00Z", "1970-01-01T00:00:07Z"},
		{"@every 7s", "1970-01-01T00:00:20Z", "1970-01-01T00:00:21Z"},
		{"@every 7s", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z"},
		{"@every 100ms", "2026-03-01T10:00:00.0001Z", "2026-03-01T10:00:00.1Z"},
		{"  @every   1h30m ", "1970-01-01T02:00:00Z", "1970-01-01T03:00:00Z"},
	} {
		after, err := time.Parse(time.RFC3339Nano, c.after)
		if err != nil {
			t.Fatal(err)
		}
		got := parse(t, c.spec, nil).Next(after).Format(time.RFC3339Nano)
		if got != c.want {
			t.Errorf("%q after %s: got %s, want %s", c.spec, c.after, got, c.want)
		}
	}
}

func TestScheduleThatCannotBeIsRefused(t *testing.T) {
	for _, c := range []struct{ spec, want string }{
		{"", "empty"},
		{"   ", "empty"},
		{"TZ=UTC", "time_zone"}, // the library panics on this text
		{"TZ=UTC 30 2 * * *", "time_zone"},
		{"CRON_TZ=Europe/Berlin 30 2 * * *", "time_zone"},
		{"30 TZ=UTC * * *", "time_zone"},
		{"0 30 2 * * *", "6 fields"},
		{"30 2 * *", "4 fields"},
		{"60 2 * * *", `minute "60"`},
		{"0 24 * * *", `hour "24"`},
		{"0 0 0 * *", `day of month "0"`},
		{"0 0 * 13 *", `month "13"`},
		{"0 0 * * 8", `day of week "8"`},
		{"0 0 * * 7/2", `day of week "7/2"`},
		{"0 0 * * L", `day of week "L"`},
		{"*/0 * * * *", `minute "*/0"`},
		{"1,,2 * * * *", "element of the list is empty"},
		{"*-5 * * * *", "combines *"},
		{"0 0 30 2 *", "never fires"},
		{"0 0 31 4,6,9,11 *", "never fires"},
		{"@every", "one duration"},
		{"@every 5s 6s", "one duration"},
		{"@every 0s", "too short"},
		{"@every -5s", "too short"},
		{"@every 99ms", "too short"},
		{"@every 9000h", "too long"},
		{"@every 100.5ms", "milliseconds"},
		{"@every 1d", "not a duration"},
		{"@reboot", "the descriptors are @yearly"},
		{"@Daily", "the descriptors are @yearly"},
		{"nonsense", "1 fields"},
	} {
		_, err := schedule.Parse(c.spec, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got error %v, want one with %q", c.spec, err, c.want)
		}
	}
}

func TestScheduleInWords(t *testing.T) {
	for _, c := range []struct{ spec, zone, want string }{
		{"@every 5s", "UTC", "every 5 s"},
		{"@every 90m", "Europe/Berlin", "every 1 h 30 min"},
		{"@every 100ms", "UTC", "every 100 ms"},
		{"* * * * *", "UTC", "every minute"},
		{"*/15 * * * *", "UTC", "every 15 minutes"},
		{"*/7 * * * *", "UTC", "*/7 * * * *"},
		{"@hourly", "UTC", "every hour"},
		{"5 * * * *", "UTC", "every hour at minute 5"},
		{"30 2 * * *", "UTC", "at 02:30 every day"},
		{"30 2 * * *", "Asia/Shanghai", "at 02:30 every day (Asia/Shanghai)"},
		{"@daily", "UTC", "at 00:00 every day"},
		{"@weekly", "UTC", "at 00:00 on Sunday"},
		{"0 6 * * 1-5", "UTC", "at 06:00 on Monday to Friday"},
		{"0 6 * * 2,4", "UTC", "at 06:00 on Tuesday, Thursday"},
		{"@monthly", "UTC", "at 00:00 on day 1 of every month"},
		{"@yearly", "UTC", "at 00:00 on 1 January"},
		{"0 6 13 * 5", "UTC", "0 6 13 * 5"},
		{"*/10 6 * * *", "UTC", "*/10 6 * * *"},
	} {
		if got := parse(t, c.spec, zone(t, c.zone)).Describe(); got != c.want {
			t.Errorf("%q: got %q, want %q", c.spec, got, c.want)
		}
	}
}

// Whatever the schedule and the zone are, slots go forward, and the search finds the same slots from every start: the slot that follows
// a time is later than that time.
func TestSlotsAreTheSameWhereverTheSearchStarts(t *testing.T) {
	specs := []string{"30 2 * * *", "*/20 1-3 * * *", "17 * * * *", "@daily", "@every 7m", "0 3 * * 7", "*/10 * * * *"}
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Havana"}
	rapid.Check(t, func(rt *rapid.T) {
		s := parse(t, rapid.SampledFrom(specs).Draw(rt, "spec"), zone(t, rapid.SampledFrom(zones).Draw(rt, "zone")))
		from := time.Unix(rapid.Int64Range(1767225600, 1798761600).Draw(rt, "from"), 0)
		first := s.Next(from)
		between := from.Add(time.Duration(rapid.Int64Range(0, int64(first.Sub(from))-1).Draw(rt, "between")))
		if !first.After(from) || !s.Next(between).Equal(first) {
			rt.Fatalf("after %v comes %v, but after %v comes %v", from, first, between, s.Next(between))
		}
	})
}

// A schedule of fixed hours is due once on every day, whatever the clock changes are.
func TestFixedHourIsDueOncePerDay(t *testing.T) {
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Havana", "Africa/Cairo"} {
		for _, spec := range []string{"0 0 * * *", "30 0 * * *", "45 1 * * *", "0 2 * * *", "15 2 * * *", "0 3 * * *"} {
			s := parse(t, spec, zone(t, name))
			day := time.Date(2026, 1, 1, 12, 0, 0, 0, zone(t, name))
			for at := day; at.Year() == 2026; {
				next := s.Next(at)
				if want := day.AddDate(0, 0, 1).YearDay(); next.YearDay() != want {
					t.Fatalf("%s in %s: after %v comes %v, which is not the next day", spec, name, at, next)
				}
				at, day = next, day.AddDate(0, 0, 1)
			}
		}
	}
}

func TestAlwaysIsAScheduleWithoutSlots(t *testing.T) {
	s := parse(t, "@always", nil)
	if next := s.Next(time.Unix(0, 0)); !next.IsZero() {
		t.Errorf("a slot at %v", next)
	}
	if got := s.Describe(); got != "all the time while leading" {
		t.Errorf("in words: %q", got)
	}
	if !schedule.IsAlways(s) || schedule.IsAlways(parse(t, "@every 1s", nil)) {
		t.Error("it is not told from others")
	}
	if _, err := schedule.Parse("@always 5s", nil); err == nil || !strings.Contains(err.Error(), "takes no argument") {
		t.Errorf("with something behind it: %v", err)
	}
}
