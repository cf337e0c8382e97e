package operate

import (
	"strings"
	"testing"

	"baton/internal/diagnose"
)

func TestTheDefinitionOfAJobIsNotCutAsANameIs(t *testing.T) {
	long := strings.Repeat("columns: {}\n", 500)
	if got := Bounded(diagnose.Job{Definition: long}).Definition; got != long {
		t.Errorf("%d bytes are left of %d", len(got), len(long))
	}
}
