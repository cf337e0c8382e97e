package metrics

import (
	"strings"
	"testing"
)

func captureCodes() CaptureCodes {
	return CaptureCodes{
		Joins: []string{"continued", "began"}, Breaks: []string{"refused"}, Passes: []string{"new"}, Ends: []string{"complete"},
	}
}

func TestCapturesAreThereAtZeroAndSayWhatTheyFollow(t *testing.T) {
	m := New("v", []string{"a"})
	m.AddFlushes("a")
	m.AddCaptures(captureCodes(), "a")
	wantSeries(t, scrape(t, m), map[string]string{
		`baton_capture_joins_total{how="continued",job="a"}`: "0", `baton_capture_interruptions_total{job="a",reason="refused"}`: "0",
		`baton_capture_passes_total{job="a",reason="new"}`: "0", `baton_capture_passes_ended_total{job="a",result="complete"}`: "0",
		`baton_capture_pass_owed{job="a"}`: "0", `baton_capture_pending_bytes{job="a"}`: "0",
		`baton_capture_pending_budget_bytes{job="a"}`: "0",
	})
	m.CaptureJoined("a", "continued")
	m.CaptureInterrupted("a", "refused")
	m.CapturePass("a", "new")
	m.CapturePassed("a", "complete")
	m.CaptureProgress("a", true, 7, 9, []CaptureMaster{{"gone:1", 1, 1, 1}})
	m.CaptureProgress("a", true, 7, 9, []CaptureMaster{{"r:1", 100, 2, 0.25}})
	got := scrape(t, m)
	wantSeries(t, got, map[string]string{
		`baton_capture_joins_total{how="continued",job="a"}`: "1", `baton_capture_joins_total{how="began",job="a"}`: "0",
		`baton_capture_interruptions_total{job="a",reason="refused"}`: "1", `baton_capture_passes_total{job="a",reason="new"}`: "1",
		`baton_capture_passes_ended_total{job="a",result="complete"}`: "1", `baton_capture_pass_owed{job="a"}`: "1",
		`baton_capture_pending_bytes{job="a"}`: "7", `baton_capture_pending_budget_bytes{job="a"}`: "9",
		`baton_capture_lag_bytes{job="a",master="r:1"}`: "100", `baton_capture_lag_seconds{job="a",master="r:1"}`: "2",
		`baton_capture_backlog_used_ratio{job="a",master="r:1"}`: "0.25",
	})
	for name := range got {
		if strings.Contains(name, "gone:1") {
			t.Errorf("%s stays, although that master is none any more", name)
		}
	}
	m.ForgetJobs("a")
	m.CaptureProgress("a", true, 7, 9, nil)
	for name := range scrape(t, m) {
		if strings.HasPrefix(name, "baton_capture") && !strings.Contains(name, "_total") {
			t.Errorf("%s stays of a job that is no more", name)
		}
	}
}
