package state

import (
	"encoding/json"
	"strings"
	"testing"

	"baton/internal/diagnose"
)

// TestAVerificationShowsEverybodyNoRecord checks that the public part of a verification contains nothing from a record.
func TestAVerificationShowsEverybodyNoRecord(t *testing.T) {
	const secret = "ann@example.org"
	o := diagnose.Operation{Kind: "verify", Error: "1 missing"}
	progress := `{"result": {"missing": 1, "examples": [{"kind": "missing", "key": "` + secret + `"}],
		"notes": ["rows were not searched for: the row of \"` + secret + `\" is spelled in another way"]}}`
	if err := json.Unmarshal([]byte(progress), &o.Progress); err != nil {
		t.Fatal(err)
	}
	shown := Public(diagnose.Snapshot{Jobs: []diagnose.Job{{Operation: &o, Verified: &o}}})
	text, err := json.Marshal(shown)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), secret) {
		t.Errorf("everybody sees %s", text)
	}
	r := shown.Jobs[0].Verified.Progress.Result
	if r.Missing != 1 || len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], "rows were not searched for") {
		t.Errorf("everybody sees %+v; want the counts, and how the notes begin", r)
	}
	if r := o.Progress.Result; len(r.Examples) != 1 || !strings.Contains(r.Notes[0], secret) {
		t.Errorf("the state itself has changed: %+v", o)
	}
}
