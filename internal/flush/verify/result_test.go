package verify_test

import (
	"slices"
	"testing"

	"baton/internal/flush/verify"
)

func TestAShortenedResultHasExamplesOfEachKind(t *testing.T) {
	t.Parallel()
	missing, extra := verify.Example{Kind: verify.Missing}, verify.Example{Kind: verify.Extra}
	r := verify.Result{Missing: 50, Extra: 2, Examples: append(slices.Repeat([]verify.Example{missing}, 30), extra, extra)}
	short := r.Shortened(10)
	if len(short.Examples) != 12 || len(r.Examples) != 32 || r.Examples[29].Kind != verify.Missing {
		t.Errorf("%d examples are left of %d: %+v", len(short.Examples), len(r.Examples), r.Examples)
	}
	for wanted, lacks := range map[int]bool{1: false, 10: false, 11: true} {
		if short.LacksExamples(wanted) != lacks {
			t.Errorf("of %d wanted examples some are missing: %v", wanted, !lacks)
		}
	}
}
