package page

import (
	"strings"
	"testing"
	"time"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/status/statustest"
)

func TestAPlannedHandoverIsNoAlarm(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		event string
		ago   time.Duration
		nodes int // the number of nodes that could take over
		want  tone
	}{
		{"stepped_down", time.Second, 2, busy}, {"released", time.Second, 2, busy}, {"expired", time.Second, 2, bad},
		{"stepped_down", time.Minute, 2, bad}, {"stepped_down", time.Second, 0, bad},
	} {
		s := statustest.Sample(now)
		s.Leader, s.Nodes = nil, s.Nodes[:c.nodes]
		s.Events = append([]diagnose.Event{{At: now.Add(-c.ago), Event: c.event, NodeID: "db1"}}, s.Events...)
		if v := newLeaderView(s, true, now); v.Tone != c.want || (v.Headline == "Handing over") != (c.want == busy) {
			t.Errorf("%+v: %+v", c, v)
		}
	}
}

// TestAPlannedHandoverOfAJobsLockIsNoAlarm checks that a handover of a job's own lock is shown like a handover of the node's lock.
func TestAPlannedHandoverOfAJobsLockIsNoAlarm(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		event string
		ago   time.Duration
		want  tone
	}{
		{"stepped_down", time.Second, busy}, {"released", 9 * time.Second, busy}, {"expired", time.Second, warn},
		{"released", time.Minute, warn},
	} {
		s := calm(now)
		s.Locks = []diagnose.Lock{{Key: "billing", Last: &diagnose.Event{At: now.Add(-c.ago), Event: c.event, NodeID: "db1"}}}
		v := newOverview(s, true, jobFilter{}, extras{})
		if alarms := todo(s, letterCount{}); v.Locks[0].Tone != c.want || (len(alarms) == 0) != (c.want == busy) {
			t.Errorf("%s %v ago: %+v, to do %q", c.event, c.ago, v.Locks[0], alarms)
		}
	}
	s := calm(now)
	s.Leader.Ending = "the end of report"
	s.Locks = []diagnose.Lock{{Key: "billing", Leader: &diagnose.Leader{NodeID: "db2", Ending: "the end of invoice"}}}
	page := render(t, s)
	for _, want := range []string{"waits for the end of report.", "waits for the end of invoice."} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// TestACancelledRunIsNotInTheColourOfFailures checks the colour of a run that was ended by a handover.
func TestACancelledRunIsNotInTheColourOfFailures(t *testing.T) {
	s := statustest.Sample(time.Now())
	run := diagnose.Run{ID: "r1", State: "cancelled", Error: "the leader hands over", Started: s.Now}
	s.Jobs[0].LastRun, s.Jobs[2].LastRun.ID = &run, "r2"
	d := &statustest.FakeNode{Entries: []operate.Entry{{ID: "1-0", At: s.Now, Run: &run}}}
	h := newServer(config{Source: statustest.Fixed(s), Node: d})
	for _, path := range []string{"/", "/jobs/page-views", "/jobs/page-views/runs/r1"} {
		body := pageOf(t, h, topic{path: path, see: true}, s, true)
		box, _, _ := strings.Cut(body, "the leader hands over")
		box = box[max(len(box)-120, 0):]
		if !strings.Contains(box, "warn") || strings.Contains(box, "bad") {
			t.Errorf("%s: %s", path, box)
		}
	}
	if body := pageOf(t, h, topic{path: "/jobs/report/runs/r2", see: true}, s, true); !strings.Contains(body, `<p class="error bad">`) {
		t.Error("a failure is not in their colour")
	}
}
