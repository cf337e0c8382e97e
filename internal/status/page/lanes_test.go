package page

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"baton/internal/diagnose"
	"baton/internal/status/statustest"
)

func TestEveryLockHasALaneWithItsGaps(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s, d := statustest.Large(now, 12, 3, 10)
	v := newTimeline(s, d.OtherEvents, "", lanesOnTimeline, now)
	var got []string
	for _, l := range v.Lanes {
		said := fmt.Sprintf("%s %d terms", l.Lock, len(l.Bars))
		for _, g := range l.Gaps {
			said += ", " + g.Class + " " + g.Text
		}
		got = append(got, said)
	}
	want := []string{
		"billing 4 terms, idle 08:00:00 UTC: no leader for 200 ms, at a handover, " +
			"bad 09:30:00 UTC: no leader for 25 min: db3 expired, idle 11:20:00 UTC: no leader for 50 ms, at a handover",
		"mail 2 terms, bad 09:00:00 UTC: no leader for 9 s: db3 expired, bad 11:48:00 UTC: no leader for 12 min: db1 expired",
	}
	if len(got) != 3 || got[1] != want[0] || got[2] != want[1] {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	if text := v.Lanes[2].Text; text != "no leader for 12 min 9 s in all" {
		t.Errorf("mail: %q", text)
	}
	if v := newTimeline(s, d.OtherEvents, "1h", lanesOnTimeline, now); v.From.Clock != "11:00:00 UTC" || len(v.Lanes[1].Bars) != 2 ||
		v.Lanes[1].Bars[0].X != "0.000%" || v.Lanes[1].Bars[0].Width != "33.333%" || v.Ranges[0].Current == v.Ranges[3].Current {
		t.Errorf("the last hour: %+v", v)
	}
	if v := newTimeline(s, d.OtherEvents, "", 2, now); len(v.Lanes) != 2 || v.MoreRows != "1 further lock" {
		t.Errorf("two of three locks: %+v", v)
	}
	body := pageOf(t, newServer(config{Source: statustest.Fixed(s), Node: d}), topic{path: "/timeline", see: true}, s, true)
	for _, want := range []string{
		"<bdi>billing</bdi>", `<svg class="gap bad" `,
		`lost the lead <span class="quiet">of <bdi>mail</bdi>`, `data-axis="time">10:00</text>`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

// TestAGapSaysWhyNoNodeLed checks the colours of gaps without a leader. A gap because of a pause is not a failure, because an operator has
// ordered it. Other gaps have the colour of failures.
func TestAGapSaysWhyNoNodeLed(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ago := func(m int) time.Time { return now.Add(-time.Duration(m) * time.Minute) }
	won := func(m int, node string) diagnose.Event { return diagnose.Event{At: ago(m), Event: "won", NodeID: node} }
	for _, c := range []struct {
		end  diagnose.Event
		next int // in minutes before now; 0 means that no node has taken over
		want string
	}{
		{diagnose.Event{At: ago(30), Event: "stepped_down", Code: "paused"}, 10, "warn"},
		{diagnose.Event{At: ago(30), Event: "released"}, 10, "bad"},
		{diagnose.Event{At: ago(30), Event: "expired"}, 10, "bad"},
		{diagnose.Event{At: now.Add(-time.Second), Event: "released"}, 0, "idle"},
	} {
		c.end.NodeID = "a"
		s := diagnose.Snapshot{Now: now, Events: []diagnose.Event{c.end, won(60, "a")}}
		if c.next > 0 {
			s.Events = append([]diagnose.Event{won(c.next, "b")}, s.Events...)
			s.Leader = &diagnose.Leader{NodeID: "b"}
		}
		v := newTimeline(s, nil, "", 9, now)
		if gaps := v.Lanes[0].Gaps; len(gaps) != 1 || gaps[0].Class != c.want {
			t.Errorf("%+v: %+v", c.end, gaps)
		}
	}
}

func TestANodeHasTheSameColourEverywhere(t *testing.T) {
	ids := []string{"db1", "db2", "db3"}
	all := coloursOf(ids)
	for _, id := range ids {
		if again := coloursOf([]string{"db3", "db1", "db2", "db1"}); len(all) != 3 || all[id] == "" || all[id] != again[id] {
			t.Errorf("%s: %v, again %v", id, all, again)
		}
	}
	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprint("node-", i))
	}
	first := map[string]bool{}
	for _, id := range many[:nodeColours] {
		first[coloursOf(many[:nodeColours])[id]] = true
	}
	if len(first) != nodeColours || len(coloursOf(many)) != 30 {
		t.Errorf("%d colours of %d nodes", len(first), nodeColours)
	}
}

// TestColoursOfNodesCanBeToldApart checks that the colours of nodes differ from each other, and that text inside of them is readable, in
// the light and in the dark scheme.
func TestColoursOfNodesCanBeToldApart(t *testing.T) {
	schemes := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(pageCSS, -1)
	if len(schemes) != 2 {
		t.Fatalf("%d schemes", len(schemes))
	}
	for i, scheme := range schemes {
		colour := func(name string) [3]float64 {
			found := regexp.MustCompile(`--` + name + `: #([0-9a-f]{3,6});`).FindStringSubmatch(scheme[1])
			if found == nil {
				t.Fatalf("no colour %s", name)
			}
			return linear(t, found[1])
		}
		card, rail := luminance(colour("card")), luminance(colour("idle-bg"))
		for a := range nodeColours {
			c := colour(fmt.Sprint("n", a))
			if got := contrast(luminance(c), card); got < 4.5 {
				t.Errorf("scheme %d: text in colour %d has a contrast of %.1f", i, a, got)
			}
			if got := contrast(luminance(c), rail); got < 3 {
				t.Errorf("scheme %d: colour %d has a contrast of %.1f", i, a, got)
			}
			for b := range a {
				if d := distance(c, colour(fmt.Sprint("n", b))); d < 0.1 {
					t.Errorf("scheme %d: colours %d and %d are %.2f apart", i, b, a, d)
				}
			}
		}
	}
}

func linear(t *testing.T, hex string) (c [3]float64) {
	t.Helper()
	if len(hex) == 3 {
		hex = strings.Join([]string{hex[:1], hex[:1], hex[1:2], hex[1:2], hex[2:], hex[2:]}, "")
	}
	for i := range c {
		n, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		if v := float64(n) / 255; v <= 0.04045 {
			c[i] = v / 12.92
		} else {
			c[i] = math.Pow((v+0.055)/1.055, 2.4)
		}
	}
	return c
}

func luminance(c [3]float64) float64 { return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2] }

func contrast(a, b float64) float64 { return (max(a, b) + 0.05) / (min(a, b) + 0.05) }

// distance returns the distance of two colours in OKLab, because equal distances in OKLab look equal.
func distance(a, b [3]float64) float64 {
	lab := func(c [3]float64) (v [3]float64) {
		l := math.Cbrt(0.4122214708*c[0] + 0.5363325363*c[1] + 0.0514459929*c[2])
		m := math.Cbrt(0.2119034982*c[0] + 0.6806995451*c[1] + 0.1073969566*c[2])
		s := math.Cbrt(0.0883024619*c[0] + 0.2817188376*c[1] + 0.6299787005*c[2])
		return [3]float64{
			0.2104542553*l + 0.793617785*m - 0.0040720468*s, 1.9779984951*l - 2.428592205*m + 0.4505937099*s,
			0.0259040371*l + 0.7827717662*m - 0.808675766*s,
		}
	}
	x, y := lab(a), lab(b)
	return math.Hypot(math.Hypot(x[0]-y[0], x[1]-y[1]), x[2]-y[2])
}

func TestTicksAreFewAndAtRoundTimes(t *testing.T) {
	to := time.Date(2026, 11, 21, 12, 3, 0, 0, time.UTC)
	for span, want := range map[time.Duration]string{
		time.Minute:         "12:02:10 12:02:20 12:02:30 12:02:40 12:02:50",
		time.Hour:           "11:10 11:20 11:30 11:40 11:50",
		6 * time.Hour:       "07:00 08:00 09:00 10:00 11:00",
		26 * time.Hour:      "20 Nov 12:00 20 Nov 18:00 21 Nov 00:00 21 Nov 06:00",
		10 * 24 * time.Hour: "13 Nov 15 Nov 17 Nov 19 Nov",
	} {
		var got []string
		for _, tick := range ticks(to.Add(-span), to) {
			got = append(got, tick.Text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%v: %s, want %s", span, strings.Join(got, " "), want)
		}
	}
	if n := len(ticks(to.Add(-20*365*24*time.Hour), to)); n > 21 {
		t.Errorf("%d ticks in twenty years", n)
	}
}
