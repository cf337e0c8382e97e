package status

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/status/statustest"
)

// TestOnlyAJobByItselfHasItsDefinition checks that only the address of a single job returns the job's definition. Definitions are long, and
// lists of many jobs are read every second.
func TestOnlyAJobByItselfHasItsDefinition(t *testing.T) {
	s, _ := statustest.Large(time.Now(), 1000, 50, 0)
	bare := New(Config{Source: statustest.Fixed(s), Health: standby, TokenFile: tokenFile(t, secretToken)})
	s.Jobs = append([]diagnose.Job{}, s.Jobs...)
	for i := range s.Jobs {
		s.Jobs[i].Definition = strings.Repeat("- name: x\n", 25)
	}
	h := New(Config{Source: statustest.Fixed(s), Health: standby, TokenFile: tokenFile(t, secretToken)})
	ask := func(h http.Handler, path string, headers ...string) string {
		r := from(httptest.NewRequest(http.MethodGet, "http://localhost:9747"+path, nil), loopbackAddr)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec.Body.String()
	}
	for _, path := range []string{"/api/v1/status", "/api/v1/jobs"} {
		had, has := len(ask(bare, path, bearer(secretToken)...)), len(ask(h, path, bearer(secretToken)...))
		if has > had+1000 || has < 100_000 { // times have different lengths
			t.Errorf("%s has %d bytes with definitions, %d without", path, has, had)
		}
	}
	path := "/api/v1/jobs/" + s.Jobs[0].Name
	if body := ask(h, path, bearer(secretToken)...); !strings.Contains(body, `"definition"`) {
		t.Errorf("%s has no definition: %s", path, body)
	}
	if body := ask(h, path); strings.Contains(body, `"definition"`) {
		t.Errorf("%s shows its definition to anybody: %s", path, body)
	}

	server := httptest.NewServer(h)
	defer server.Close()
	c, err := operate.DialServer(server.URL, tokenFile(t, secretToken), "")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := c.Definition(t.Context(), s.Jobs[0].Name); err != nil || text != s.Jobs[0].Definition {
		t.Errorf("the client has %q, %v", text, err)
	}
	if s.Jobs[0].Definition == "" {
		t.Error("the state itself has changed")
	}
	if body, err := json.Marshal(s); err != nil || strings.Contains(string(body), "definition") {
		t.Errorf("the state as JSON has definitions, %v", err)
	}
}
