package page

import (
	"strings"
	"testing"
	"time"

	"baton/internal/diagnose"
	"baton/internal/status/statustest"
)

func TestPageTellsWhoPausedTheElectionAndHowItGoesOn(t *testing.T) {
	now := time.Now()
	s := statustest.Sample(now)
	s.Paused = &diagnose.Pause{Since: now.Add(-3 * time.Minute), Reason: "by alice: upgrade of <db1>"}
	if page := render(t, s); !strings.Contains(page, "db1</bdi> leads") || !strings.Contains(page,
		"Paused by alice: upgrade of &lt;db1&gt;. It is about to step down.") {
		t.Error("a leader that was told to pause is not shown as such")
	}
	s.Leader = nil
	page := render(t, s)
	for _, want := range []string{"Paused: no node leads", "Paused by alice: upgrade of &lt;db1&gt;. No job runs.", "3 min"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	s.Paused, s.Vacancy = nil, "in quarantine for another 4s"
	if page := render(t, s); !strings.Contains(page, "In quarantine for another 4s.") {
		t.Error("the page does not say why no node leads")
	}
}

func TestPageTellsWhichNodesGoFirstNeverOrLater(t *testing.T) {
	s := statustest.Sample(time.Now())
	s.Nodes[0].Priority = 10
	s.Nodes[1].Observer = true
	s.Nodes[2].Stale, s.Nodes[2].Aside = false, `for another 20s: database "main" is away`
	s.Events = append([]diagnose.Event{{At: s.Now, Event: "paused", Reason: "by alice"}}, s.Events...)
	page := render(t, s)
	for _, want := range []string{"priority 10", `">observer</span>`,
		"Stands aside for another 20s: database &#34;main&#34; is away", "<p>paused<span"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
