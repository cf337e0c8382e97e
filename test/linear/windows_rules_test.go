package linear

import "testing"

func window(node int, first, last, low, high int64) *term {
	return &term{node: node, first: first, last: last, low: low, high: high}
}

func TestSharedTrustIsFound(t *testing.T) {
	apart := []*term{window(0, 10, 20, 1, 1), window(1, 20, 30, 2, 2), window(2, 0, 0, 3, 3), window(0, 31, 40, 4, 4)}
	if sum, wrongs := overlaps(apart); sum != 0 || len(wrongs) != 0 {
		t.Errorf("windows that touch: %v %q", sum, wrongs)
	}
	within := []*term{window(0, 10, 100, 1, 1), window(1, 120, 130, 3, 3), window(2, 40, 60, 2, 2), window(0, 90, 110, 4, 4)}
	if sum, wrongs := overlaps(within); sum != 30 || len(wrongs) != 2 {
		t.Errorf("one window within another, and one across its end: %v %q", sum, wrongs)
	}
}

func TestEpochThatDoesNotRiseIsFound(t *testing.T) {
	if wrongs := rising([]*term{window(0, 10, 20, 1, 4), window(1, 20, 30, 5, 5), window(2, 0, 0, 2, 2)}); len(wrongs) != 0 {
		t.Errorf("rising epochs: %q", wrongs)
	}
	if wrongs := rising([]*term{window(0, 10, 20, 1, 4), window(1, 20, 30, 4, 5)}); len(wrongs) != 1 {
		t.Errorf("an epoch that was another's after a lift: %q", wrongs)
	}
}

func TestRecoveryIsMeasuredFromTheLastFaultsEnd(t *testing.T) {
	terms := []*term{window(0, 10, 100, 1, 1), window(1, 150, 200, 2, 2)}
	took, wrongs := recoveries([]calm{{50, 90, 30}, {110, 190, 30}, {110, 190, 50}, {210, 220, 30}, {230, 500, 30}}, terms)
	if len(took) != 3 || took[0] != 0 || took[1] != 40 {
		t.Errorf("took %v, want 0 and twice 40", took)
	}
	if len(wrongs) != 2 { // 40 are too long, and of the last nobody ever led again
		t.Errorf("found %q", wrongs)
	}
}
