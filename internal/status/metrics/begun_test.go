package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
)

// TestANodeThatHasJustBegunTellsThatAllIsWell checks the time of the scrape, the metrics of the process, and the metrics of a new node.
func TestANodeThatHasJustBegunTellsThatAllIsWell(t *testing.T) {
	m := New("v", []string{"a"})
	m.Election("baton").Won(42)
	if time.Since(m.Scraped()) < time.Hour {
		t.Error("nobody has asked yet")
	}
	rec := httptest.NewRecorder()
	m.Handler(zap.NewNop()).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if time.Since(m.Scraped()) > time.Minute {
		t.Errorf("asked %v", m.Scraped())
	}
	text := rec.Body.String()
	for _, want := range []string{"\nbaton_config_last_reload_successful 1\n", "\nbaton_epoch{lock=\"baton\"} 42\n",
		"\nbaton_redis_up{lock=\"baton\"} 1\n", "\nprocess_open_fds ", "\ngo_goroutines ",
		"# HELP baton_leader 1 while", "# HELP baton_job_runs_total Finished", "# HELP baton_lease_remaining_seconds Time"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	m.Reloaded(false)
	wantSeries(t, scrape(t, m), map[string]string{"baton_config_last_reload_successful": "0"})
}
