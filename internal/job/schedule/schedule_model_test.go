package schedule_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"baton/internal/job/schedule"
)

const (
	modelYear = 2025
	// margin is the number of minutes beyond the year for which slots are known, because a gap can move slots.
	margin = 3 * 24 * 60
)

// clock holds the time that the clock of a zone shows in every minute of a year. Times of the wall clock are also counted in minutes,
// from two days earlier.
type clock struct {
	loc   *time.Location
	start time.Time
	wall  []int32 // by the number of minutes since start
	first []int32 // when the clock first shows a time; never: -1
}

const day = 24 * 60

func newClock(t testing.TB, name string) clock {
	const minutes = 365*day + 2*margin
	c := clock{
		loc: zone(t, name), start: time.Date(modelYear, 1, 1, 0, 0, 0, 0, time.UTC).Add(-margin * time.Minute),
		wall: make([]int32, minutes), first: slices.Repeat([]int32{-1}, minutes+4*day),
	}
	for minute := range int32(minutes) {
		_, offset := c.start.Add(time.Duration(minute) * time.Minute).In(c.loc).Zone()
		wall := minute + int32(offset/60) + 2*day
		c.wall[minute] = wall
		if c.first[wall] < 0 {
			c.first[wall] = minute
		}
	}
	return c
}

// date returns the date of a time of the wall clock.
func (c clock) date(wall int32) time.Time { return c.start.AddDate(0, 0, int(wall/day)-2) }

// expression is a cron expression, together with an independent description of its meaning.
type expression struct {
	text   string
	values [5][]bool
	star   [5]bool
}

// days reports which of the clock's dates match.
func (e expression) days(c clock) []bool {
	match := make([]bool, len(c.first)/day+1)
	for i := range match {
		date := c.date(int32(i * day))
		month, week := e.values[2][date.Day()], e.values[4][date.Weekday()]
		match[i] = month || week
		if e.star[2] || e.star[4] {
			match[i] = month && week
		}
		match[i] = match[i] && e.values[3][date.Month()]
	}
	return match
}

// slots returns the slots that a walk through the year, minute by minute, finds.
func (e expression) slots(c clock) []time.Time {
	days := e.days(c)
	matches := func(wall int32) bool {
		return days[wall/day] && e.values[1][wall%day/60] && e.values[0][wall%60]
	}
	due := make([]bool, len(c.wall))
	if everyHour := !slices.Contains(e.values[1], false); everyHour {
		for minute, wall := range c.wall {
			due[minute] = matches(wall)
		}
	} else {
		next := int32(-1) // the first minute after a gap
		for wall := c.wall[len(c.wall)-1]; wall >= c.wall[0]; wall-- {
			if c.first[wall] >= 0 {
				next = c.first[wall]
			}
			due[next] = due[next] || matches(wall)
		}
	}
	var list []time.Time
	for minute := margin; minute < len(due)-margin; minute++ {
		if due[minute] {
			list = append(list, c.start.Add(time.Duration(minute)*time.Minute))
		}
	}
	return list
}

// drawField draws one field at random: a star, or a list of values, ranges and steps.
func drawField(rt *rapid.T, name string, low, high int) (text string, values []bool, star bool) {
	values = make([]bool, high+1)
	set := func(from, to, step int) {
		for v := from; v <= to; v += step {
			values[v] = true
		}
	}
	if rapid.IntRange(0, 2).Draw(rt, name+" star") == 0 {
		set(low, high, 1)
		return "*", values, true
	}
	var parts []string
	for i := range rapid.IntRange(1, 3).Draw(rt, name+" parts") {
		at := fmt.Sprint(name, i)
		from := rapid.IntRange(low, high).Draw(rt, at)
		to := rapid.IntRange(from, high).Draw(rt, at+" to")
		step := rapid.IntRange(1, high-low+1).Draw(rt, at+" step")
		switch rapid.SampledFrom([]string{"one", "range", "step", "from"}).Draw(rt, at+" kind") {
		case "one":
			set(from, from, 1)
			parts = append(parts, strconv.Itoa(from))
		case "range":
			set(from, to, 1)
			parts = append(parts, fmt.Sprintf("%d-%d", from, to))
		case "step":
			set(from, to, step)
			parts = append(parts, fmt.Sprintf("%d-%d/%d", from, to, step))
		case "from":
			set(from, high, step)
			parts = append(parts, fmt.Sprintf("%d/%d", from, step))
		}
	}
	return strings.Join(parts, ","), values, false
}

func drawExpression(rt *rapid.T) expression {
	var e expression
	var texts []string
	for i, f := range []struct {
		name      string
		low, high int
	}{{"minute", 0, 59}, {"hour", 0, 23}, {"day", 1, 31}, {"month", 1, 12}, {"weekday", 0, 6}} {
		text, values, star := drawField(rt, f.name, f.low, f.high)
		texts, e.values[i], e.star[i] = append(texts, text), values, star
	}
	e.text = strings.Join(texts, " ")
	return e
}

// Whatever the expression and the zone are, the slots of a year are the slots that a literal reading of the rules finds by checking the
// clock every minute.
func TestSlotsAgreeWithAWalkOverTheMinutes(t *testing.T) {
	var clocks []clock
	for _, name := range []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "America/Havana",
		"Antarctica/Troll", "Pacific/Chatham"} {
		clocks = append(clocks, newClock(t, name))
	}
	const most = 150 // number of slots to compute, from any start
	rapid.Check(t, func(rt *rapid.T) {
		e := drawExpression(rt)
		if _, err := schedule.Parse(e.text, time.UTC); err != nil {
			if !strings.Contains(err.Error(), "never fires") {
				rt.Fatal(err)
			}
			return
		}
		c := rapid.SampledFrom(clocks).Draw(rt, "clock")
		s := parse(t, e.text, c.loc)
		want := e.slots(c)
		if len(want) > most {
			from := rapid.IntRange(0, len(want)-most).Draw(rt, "from")
			want = want[from : from+most]
		}
		at := time.Date(modelYear, 1, 1, 0, 0, 0, 0, time.UTC).Add(-time.Nanosecond)
		if len(want) > 0 {
			at = want[0].Add(-time.Nanosecond)
		}
		for i, slot := range want {
			next := s.Next(at)
			if !next.Equal(slot) {
				rt.Fatalf("%s in %v: after %v comes %v, want slot %d at %v", e.text, c.loc, at.In(c.loc), next, i, slot.In(c.loc))
			}
			if again := s.Next(next.Add(-time.Nanosecond)); !again.Equal(next) || !next.After(at) {
				rt.Fatalf("%s in %v: %v, but from just before it %v", e.text, c.loc, next, again)
			}
			at = next
		}
	})
}

// No text makes the parser panic, and every text that the parser accepts has slots and a description.
func FuzzSchedule(f *testing.F) {
	for _, part := range [][]conformance{refusals(), expressions()} {
		for _, c := range part {
			f.Add(c.spec)
		}
	}
	berlin := zone(f, "Europe/Berlin")
	f.Fuzz(func(t *testing.T, spec string) {
		s, err := schedule.Parse(spec, berlin)
		if err != nil || schedule.IsAlways(s) {
			return
		}
		at := time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC)
		for range 3 {
			next := s.Next(at)
			if !next.After(at) || s.Describe() == "" || schedule.Interval(s) <= 0 {
				t.Fatalf("%q: after %v comes %v, %q, every %v", spec, at, next, s.Describe(), schedule.Interval(s))
			}
			at = next
		}
		_ = schedule.Shifts(s, at, at.AddDate(1, 0, 0))
	})
}
