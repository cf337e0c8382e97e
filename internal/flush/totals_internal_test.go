package flush

import (
	"context"
	"testing"
)

// When a page is done, the mark of a later page must stay.
func TestMarkOfALaterPageOutlivesAnEarlierOne(t *testing.T) {
	s := &totals{underway: map[string]underway{}}
	s.underway["a"] = underway{"9", 2}
	_ = s.Done(context.Background(), Stage{}, Page{Part: 1, Marks: []Mark{{"a", "5"}}})
	if s.underway["a"].value != "9" {
		t.Error("the mark of part 2 went with part 1")
	}
	_ = s.Done(context.Background(), Stage{}, Page{Part: 2, Marks: []Mark{{"a", "9"}}})
	if len(s.underway) != 0 {
		t.Error("the mark stayed")
	}
}
