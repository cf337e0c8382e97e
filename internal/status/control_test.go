package status

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"baton/internal/diagnose"
	"baton/internal/status/statustest"
)

func TestHealthTellsWhyNoNodeLeads(t *testing.T) {
	h := Health{Live: true, Ready: true, Waiting: "paused by alice: upgrade"}
	rec := httptest.NewRecorder()
	New(Config{Source: statustest.Fixed(diagnose.Snapshot{}), Health: func() Health { return h }}).ServeHTTP(rec,
		httptest.NewRequest(http.MethodGet, "/-/leader", nil))
	if got := rec.Body.String(); rec.Code != 503 || got != "not leading: paused by alice: upgrade\n" {
		t.Errorf("%d %q", rec.Code, got)
	}
}
