package jobcmd

import (
	"strings"
	"testing"

	"baton/internal/diagnose"
)

// TestAVerificationThatWasCutShortFindsNothingEqual checks that an incomplete verification does not report that there are no differences.
func TestAVerificationThatWasCutShortFindsNothingEqual(t *testing.T) {
	for state, want := range map[string]string{
		"succeeded": ": no differences\n", "failed": ": the comparison is incomplete; no differences so far\n",
		"cancelled": ": the comparison is incomplete; no differences so far\n",
	} {
		var b strings.Builder
		if err := printOperation(&b, diagnose.Operation{Kind: "verify", State: state}); err != nil || !strings.HasSuffix(b.String(), want) {
			t.Errorf("%s: %q, %v; want %q", state, b.String(), err, want)
		}
	}
}
