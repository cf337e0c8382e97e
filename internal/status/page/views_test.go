package page

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/status/statustest"
	"baton/internal/text"
)

func TestOtherPagesEscapeEveryText(t *testing.T) {
	s := statustest.Sample(time.Now())
	s.Jobs[0].Command, s.Jobs[0].Target, s.Jobs[0].LastRun.Error = true, statustest.Hostile, statustest.Hostile
	s.Jobs[0].Running = &diagnose.Run{ID: "r1", State: "running", By: statustest.Hostile, NodeID: statustest.Hostile,
		Trigger: statustest.Hostile}
	for i := range s.Events {
		s.Events[i].NodeID, s.Events[i].Reason = statustest.Hostile, statustest.Hostile
	}
	d := &statustest.FakeNode{
		Entries: []operate.Entry{{ID: "1-1", Run: &diagnose.Run{ID: "r2", State: statustest.Hostile,
			Error: statustest.Hostile, By: statustest.Hostile, NodeID: statustest.Hostile}}, {ID: "1-0",
			Missed: &operate.Missed{Reason: statustest.Hostile, Count: 2, Error: statustest.Hostile, NodeID: statustest.Hostile}}},
		Output: operate.Printed{Text: statustest.Hostile + "\x1b[31mred\r"},
		Waiting: []operate.Letter{{ID: statustest.Hostile, Job: statustest.Hostile, Database: statustest.Hostile,
			Error: statustest.Hostile, Record: statustest.Hostile}},
		Measured: []operate.Sample{{At: s.Now.Add(-time.Minute), Jobs: map[string]operate.Level{"page-views": {}}},
			{At: s.Now, Jobs: map[string]operate.Level{"page-views": {}}}},
	}
	h := newServer(config{Source: statustest.Fixed(s), Node: d})
	for _, path := range []string{"/", "/timeline", "/dead-letters", "/jobs/page-views", "/jobs/page-views/runs/r1",
		"/jobs/page-views/runs/r2", "/jobs/%22%3E%3Cscript%3E"} {
		body := pageOf(t, h, topic{path: path, see: true, order: true}, s, true)
		if strings.Count(body, "<script") != 1 || strings.Contains(body, "<img") || strings.Contains(body, "onerror='") {
			t.Errorf("%s: hostile text came through", path)
		}
	}
	body := pageOf(t, h, topic{path: "/jobs/page-views/runs/r1", see: true}, s, true)
	if !strings.Contains(body, "\u241b[31mred\u240d") {
		t.Error("control characters of the output cannot be seen")
	}
}

func TestWhoMayNotSeeIsShownNoOutputRecordOrError(t *testing.T) {
	const secret = "s3cr3t"
	s := statustest.Sample(time.Now())
	s.Jobs[2].Command = true
	s.Jobs[2].LastRun.ID, s.Jobs[2].LastRun.Error, s.Jobs[2].LastRun.Output = "r1", "exit code 1: "+secret, secret
	d := &statustest.FakeNode{
		Entries: []operate.Entry{{ID: "1-1", Run: &diagnose.Run{ID: "r2", State: "failed", Error: "exit code 1: " +
			secret}}, {ID: "1-0", Missed: &operate.Missed{Reason: "ledger", Count: 1, Error: "x: " + secret}}},
		Output: operate.Printed{Text: secret}, Waiting: []operate.Letter{{ID: "1", Job: "report", Error: "column: " +
			secret, Record: secret}},
	}
	h := newServer(config{Source: statustest.Fixed(s), Node: d})
	for _, path := range []string{"/", "/timeline", "/dead-letters", "/jobs/report", "/jobs/users",
		"/jobs/report/runs/r1", "/jobs/report/runs/r2"} {
		if body := pageOf(t, h, topic{path: path}, s, true); strings.Contains(body, secret) {
			t.Errorf("%s shows what is secret", path)
		}
		if body := pageOf(t, h, topic{path: path, see: true}, s, true); path != "/timeline" && path != "/jobs/users" &&
			!strings.Contains(body, secret) {
			t.Errorf("%s does not show it to who may see it", path)
		}
	}
	if d.Entries[0].Run.Error != "exit code 1: "+secret {
		t.Error("what others share was changed")
	}
}

func TestPagesOfWhatIsNotThere(t *testing.T) {
	h := newServer(config{Source: statustest.Fixed(statustest.Sample(time.Now())), Node: &statustest.FakeNode{}})
	for path, code := range map[string]int{
		"/jobs/none": 404, "/jobs/users/runs/none": 404, "/jobs": 404, "/jobs/users/x": 404, "/jobs/users": 200,
		"/timeline": 200, "/dead-letters": 200,
		"/live": 400, "/live?page=nowhere": 400, "/live?page=/nowhere": 404, "/sign-in": 200,
		"/confirm?action=run&job=users": 403, "/done?id=x": 303,
	} {
		if rec := statustest.Get(h, path); rec.Code != code {
			t.Errorf("%s: %d, want %d", path, rec.Code, code)
		}
	}
}

func TestWithoutATokenFileThePageSaysHowOrdersAreGiven(t *testing.T) {
	h := newServer(config{Source: statustest.Fixed(statustest.Sample(time.Now())), Node: &statustest.FakeNode{}})
	body := statustest.Get(h, "/").Body.String()
	if strings.Contains(body, "/confirm") || !strings.Contains(body, "set <code>http.token_file</code>") ||
		!strings.Contains(body, "<code>baton stepdown</code>") {
		t.Error("it shows buttons, or does not say how to have them")
	}
}

func TestEveryActionIsConfirmedWithWhatItDoes(t *testing.T) {
	s := statustest.Sample(time.Now())
	for _, o := range []operate.Order{
		{Kind: operate.KindStepDown}, {Kind: operate.KindPause}, {Kind: operate.KindResume}, {Kind: operate.KindRun,
			Job: "users"}, {Kind: operate.KindCancel, Job: "users", RunID: "r"},
		{Kind: operate.KindPauseJob, Job: "users"}, {Kind: operate.KindPauseJob}, {Kind: operate.KindResumeJob},
		{Kind: operate.KindReplay, Letter: "1"}, {Kind: operate.KindDrop, Letter: "1"},
	} {
		c, ok := newConfirmation(o, s)
		if !ok || c.Heading == "" || c.What == "" || c.Button == "" || !strings.HasPrefix(c.Command, "baton ") ||
			o.Job != "" && !strings.Contains(c.Heading+c.What, o.Job) {
			t.Errorf("%+v: %v %+v", o, ok, c)
		}
	}
	for _, o := range []operate.Order{{}, {Kind: "nothing"}, {Kind: operate.KindRun}, {Kind: operate.KindDrop},
		{Kind: operate.KindReplay}, {Kind: operate.KindCancel}} {
		if _, ok := newConfirmation(o, s); ok {
			t.Errorf("%+v is taken for an order", o)
		}
	}
}

func TestAfterSigningInOneComesToThisPageAlone(t *testing.T) {
	for next, want := range map[string]string{
		"/": "/", "/jobs/a?x=1": "/jobs/a?x=1", "": "/", "https://evil.example/": "/", "//evil.example": "/",
		`/\evil.example`: "/", "/a\r\nb": "/", "jobs": "/", "javascript:alert(1)": "/",
	} {
		if got := ownPath(next); got != want {
			t.Errorf("%q: %q, want %q", next, got, want)
		}
	}
}

func TestTimelineTellsWhoLedWhenAndWhyItEnded(t *testing.T) {
	now := time.Date(2026, 7, 22, 14, 0, 0, 0, time.UTC)
	ago := func(m int) time.Time { return now.Add(-time.Duration(m) * time.Minute) }
	s := diagnose.Snapshot{Now: now, Leader: &diagnose.Leader{NodeID: "c"}, Events: []diagnose.Event{
		{At: ago(10), Event: "won", NodeID: "c", Epoch: 4},
		{At: ago(20), Event: "won", NodeID: "b", Epoch: 3}, // this leader was then killed
		{At: ago(30), Event: "stepped_down", NodeID: "a", Epoch: 2, Reason: "by alice: upgrade"},
		{At: ago(60), Event: "won", NodeID: "a", Epoch: 2},
		{At: ago(70), Event: "expired", NodeID: "c", Epoch: 1},
	}}
	newTimeline := func(s diagnose.Snapshot, now time.Time) timelineView { return newTimeline(s, nil, "", 9, now) }
	v := newTimeline(s, now)
	var got []string
	for _, term := range v.Terms {
		got = append(got, term.Node+" "+term.Why)
	}
	if want := "c |b its lease ran out, and c took over|a stepped down: by alice: upgrade|c expired"; strings.Join(got, "|") != want {
		t.Errorf("terms %q, want %q", strings.Join(got, "|"), want)
	}
	if len(v.Lanes) != 1 || len(v.Legend) != 3 || !v.Terms[0].Open || !v.Terms[3].Cut || len(v.Lanes[0].Bars) != 4 {
		t.Errorf("%+v", v)
	}
	s.Leader = nil
	if v := newTimeline(s, now); v.Terms[0].Open || v.Terms[0].Tone != bad {
		t.Errorf("a leader that is gone still leads: %+v", v.Terms[0])
	}
	// The node registered last nine minutes ago, while it led. If it had led longer, it would have registered again.
	s.Nodes = []diagnose.Node{{ID: "c", State: diagnose.StateSilent, Led: true, LastSeenAgo: text.Seconds(9 * time.Minute)}}
	if v := newTimeline(s, now); v.Terms[0].For != "1 min 35 s" {
		t.Errorf("a leader that died nine minutes ago led for %s", v.Terms[0].For)
	}
	s.Events = append([]diagnose.Event{{At: ago(1), Event: "won", NodeID: "a", Epoch: 5}, {At: ago(1), Event: "expired",
		NodeID: "c", Epoch: 4, Reason: "its lease ran out"}}, s.Events...)
	if v := newTimeline(s, now); v.Terms[1].Node != "c" || v.Terms[1].For != "1 min 35 s" {
		t.Errorf("its successor came eight minutes later: %+v", v.Terms[1])
	}
	// If the end of the lease is known, neither the page nor the next leader counts the gap as a part of the term.
	s.Events[1].Over = now.Add(-9*time.Minute - 30*time.Second)
	if v := newTimeline(s, now); v.Terms[1].Node != "c" || v.Terms[1].For != "30 s" {
		t.Errorf("its lease ended after 30 s: %+v", v.Terms[1])
	}
	s.Events, s.Held = s.Events[2:], now.Add(-9*time.Minute-40*time.Second)
	if v := newTimeline(s, now); v.Terms[0].Node != "c" || v.Terms[0].For != "20 s" {
		t.Errorf("nobody has taken over, and its lease ended after 20 s: %+v", v.Terms[0])
	}
	if v := newTimeline(diagnose.Snapshot{Now: now}, now); v.Lanes != nil {
		t.Errorf("nothing has happened, and yet: %+v", v)
	}
}

func TestPlotsHaveGapsAndAxesThatPeopleLike(t *testing.T) {
	now := time.Now()
	points := []point{{now.Add(-50 * time.Minute), 1}, {now.Add(-49*time.Minute - 45*time.Second), 70},
		{now.Add(-time.Minute), 2}, {now.Add(-45 * time.Second), 3}}
	p := newPlot(lagTitle, points, now, plotSpan, 60, seconds)
	if len(p.Lines) != 2 || p.Top != "2 min" || p.Half != "1 min" || p.Limit != "80.0" || !strings.HasPrefix(p.Text,
		"now 3 s, at most 1 min 10 s at ") {
		t.Errorf("%+v", p)
	}
	for v, want := range map[float64]float64{0: 10, 9: 10, 11: 20, 21: 50, 185_000: 200_000, 200_001: 500_000} {
		if got := niceTop(v, false); got != want {
			t.Errorf("an axis for %v ends at %v, want %v", v, got, want)
		}
	}
	if newPlot(lagTitle, points[:1], now, plotSpan, 60, seconds) != nil {
		t.Error("one sample is drawn as a line")
	}
}

func TestAFailureOfEveryJobKeepsThePageSmall(t *testing.T) {
	justAfterMidnight := time.Now().UTC().Truncate(24 * time.Hour).Add(time.Minute) // at this time most times are shown with their date
	s, d := statustest.Large(justAfterMidnight, 200, 50, 10)
	for i := range s.Jobs {
		s.Jobs[i].ConsecutiveFailures = 12
		s.Jobs[i].LagSeconds, s.Jobs[i].DueAt = new(4000.0), s.Now.Add(-time.Hour)
		s.Jobs[i].LastRun.State, s.Jobs[i].LastRun.Error = "failed", strings.Repeat("connection refused ", 100)
	}
	h := newServer(config{Source: statustest.Fixed(s), Node: d})
	body := []byte(pageOf(t, h, topic{path: "/", see: true, order: true}, s, true))
	if len(body) > atMost || bytes.Count(body, []byte(`class="error"`)) != errorsOnFront {
		t.Errorf("%d bytes, want at most %d", len(body), atMost)
	}
	if rec := statustest.Get(h, "/"); rec.Code != http.StatusOK {
		t.Error(rec.Code)
	}
}

func TestDeadLettersThatCannotBeCountedAreTold(t *testing.T) {
	away := errors.New("main: connection refused")
	some := []operate.Letter{{ID: "1"}, {ID: "2"}}
	for _, tc := range []struct {
		letters      []operate.Letter
		err          error
		tells, lacks string
	}{
		{nil, nil, "", "ead letters"},
		{nil, &operate.Coded{Code: "dead_usage", Kind: operate.ErrInvalid, Err: errors.New("no databases")}, "", "could not be counted"},
		{nil, away, "Dead letters could not be counted", "records that did not fit"},
		{some, away, "There may be more dead letters", "could not be counted"},
		{some, nil, "<b>2 dead letters</b>", "may be more"},
	} {
		s := statustest.Sample(time.Now())
		s.Jobs = s.Jobs[:1]
		h := newServer(config{Source: statustest.Fixed(s), Node: &statustest.FakeNode{Waiting: tc.letters, LettersErr: tc.err}})
		_, body, _ := strings.Cut(pageOf(t, h, topic{path: "/", see: true}, s, true), "<main")
		if !strings.Contains(body, tc.tells) || strings.Contains(body, tc.lacks) {
			t.Errorf("%d letters, %v: want %q and not %q", len(tc.letters), tc.err, tc.tells, tc.lacks)
		}
	}
}
