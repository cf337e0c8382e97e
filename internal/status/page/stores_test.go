package page

import (
	"strings"
	"testing"
	"time"

	"baton/internal/diagnose"
	"baton/internal/status/statustest"
)

func TestStoresAreShownWithTheirStateAndTheJobsThatReadThem(t *testing.T) {
	s := statustest.Sample(time.Now())
	page := render(t, s)
	for _, want := range []string{"Stores of some jobs", ">shop<", "10.0.1.1:6379", "from store <code>shop</code>", ">answers<"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(page, "Store shop does not answer") {
		t.Error("a store that answers is a problem")
	}
	s.Stores[0].OK, s.Stores[0].Error = false, "dial tcp: "+statustest.Hostile
	page = render(t, s)
	for _, want := range []string{
		"Store shop does not answer", "See whether Redis runs at 10.0.1.1:6379", ">does not answer<", "<bdi>users</bdi>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("of one that is away: no %q", want)
		}
	}
	if strings.Contains(page, "<script>alert(1)") {
		t.Error("its error is not escaped")
	}
	s.Stores, s.Jobs = nil, []diagnose.Job{}
	if strings.Contains(render(t, s), "Stores of some jobs") {
		t.Error("there is none, and a table of them")
	}
}
