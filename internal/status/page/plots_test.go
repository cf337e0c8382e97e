package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/status/statustest"
	"baton/internal/text"
)

func TestPlotsOfAJobHaveValuesRangesAndHandovers(t *testing.T) {
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	s := statustest.Sample(now)
	s.Events = append([]diagnose.Event{{At: now.Add(-20 * time.Minute), Event: "won", NodeID: "db3"}}, s.Events...)
	d := &statustest.FakeNode{Latest: map[string][]operate.Brief{"users": {
		{ID: "1-0", RunID: "r1", State: "failed", Started: now.Add(-time.Minute), Duration: 4000 * text.Millisecond, Rows: 12,
			ExitCode: new(7)},
		{ID: "2-0", State: "missed", Started: now.Add(-30 * time.Second), Count: 3},
	}}}
	for i := range 240 {
		at := now.Add(-time.Duration(239-i) * 15 * time.Second)
		level := operate.Level{LagSeconds: 90, Backlog: 1234, RowsPerSecond: new(float64(i))}
		if i < 100 {
			level.RowsPerSecond = nil // as in a sample of an older version
		}
		d.Measured = append(d.Measured, operate.Sample{At: at, Jobs: map[string]operate.Level{"users": level}})
	}
	h := newServer(config{Source: statustest.Fixed(s), Node: d})
	page := func(query string) string {
		return pageOf(t, h, topic{path: "/jobs/users", query: meant("/jobs/users", query), see: true}, s, true)
	}
	hour := page("")
	for _, want := range []string{
		"<b>Lag</b>", "<b>Backlog</b>", "<b>Rows a second</b>", "now 239, at most 239 at 08:00 UTC",
		`<title data-clock="1795248000000">08:00:00 UTC: 1 min 30 s</title>`,
		`<title data-clock="1795248000000">08:00:00 UTC: 1,234</title>`, `<title data-clock="1795248000000">08:00:00 UTC: 239</title>`,
		`<path class="mark" d="M480.0 0V160"/>`, ">07:40:00 UTC: db3 took the lead</title>",
		`<a href="../jobs/users?range=10m">10 min</a>`, `<a href="../jobs/users" aria-current="true">1 h</a>`,
		`<a href="../jobs/users/runs/r1?entry=1-0" aria-label="07:59:00 UTC: failed, took 4 s, 12 rows, exit code 7" ` +
			`data-clock="1795247940000">`,
		">07:59:30 UTC: 3 slots missed</title>", "2 runs: 1 failed, 1 missed; took 4 s",
	} {
		if !strings.Contains(hour, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	s.Jobs[1].Lock, s.Locks = "billing", []diagnose.Lock{{Key: "billing"}}
	d.OtherEvents = map[string][]diagnose.Event{"billing": {{At: now.Add(-30 * time.Minute), Event: "won", NodeID: "db2"}}}
	h = newServer(config{Source: statustest.Fixed(s), Node: d})
	if own := page(""); strings.Contains(own, "db3 took the lead") || !strings.Contains(own, "07:30:00 UTC: db2 took the lead") {
		t.Error("a job with a lock of its own has the handovers of another one")
	}
	s.Jobs[1].Lock, s.Locks = "", nil
	short := page("range=10m")
	if strings.Contains(short, "took the lead</title>") || !strings.Contains(short, "10 min ago") ||
		strings.Contains(short, "07:49:00 UTC: 1 min 30 s") {
		t.Error("the last ten minutes are not alone")
	}
	if n := strings.Count(short, `<rect class="hit"`); n < 3*40 || n > 3*plotHits+10 {
		t.Errorf("%d values on hovering", n)
	}
}

func TestTheAxisOfDurationsHoldsTheLongest(t *testing.T) {
	for most, want := range map[time.Duration]time.Duration{
		0: 10 * time.Millisecond, 84 * time.Millisecond: 100 * time.Millisecond, time.Second: time.Second,
		1200 * time.Millisecond: 2 * time.Second, 40 * time.Minute: time.Hour, 30 * time.Hour: 200000 * time.Second,
	} {
		if got := durationTop(most); got != want {
			t.Errorf("%v: %v, want %v", most, got, want)
		}
	}
	for _, most := range []int64{0, 84, 5000} {
		runs := []operate.Brief{{RunID: "r", State: "succeeded", Duration: text.Seconds(most) * text.Millisecond}}
		v := newDurations("x", runs, time.Now())
		if b := v.Bars[0]; b.Height < 4 || b.Y+b.Height != plotHeight || b.X != plotWidth-barWidth || b.Tone != good {
			t.Errorf("%d ms: %s", most, fmt.Sprint(b))
		}
	}
}
