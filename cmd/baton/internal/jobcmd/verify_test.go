package jobcmd

import (
	"strings"
	"testing"

	"baton/internal/diagnose"
)

// What was not compared may differ.
func TestAVerificationThatWasCutShortFindsNothingEqual(t *testing.T) {
	for state, want := range map[string]string{
		"succeeded": ": no differences\n", "failed": ": not all was compared; no differences so far\n",
		"cancelled": ": not all was compared; no differences so far\n",
	} {
		var b strings.Builder
		if err := printOperation(&b, diagnose.Operation{Kind: "verify", State: state}); err != nil || !strings.HasSuffix(b.String(), want) {
			t.Errorf("%s: %q, %v; want %q", state, b.String(), err, want)
		}
	}
}
