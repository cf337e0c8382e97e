package direct

import (
	"strings"
	"testing"

	"baton/internal/config"
	"baton/internal/redisledger"
	"baton/internal/testsupport"
)

// TestARequestThatAnotherWithdrewHasNotBegun checks the same order, given twice at the same time. Both calls wait, and the call whose time
// limit ends first withdraws the order. The other call must not report that the run has begun.
func TestARequestThatAnotherWithdrewHasNotBegun(t *testing.T) {
	c := config.Default()
	c.Redis.URL = testsupport.StartRedis(t).URL()
	c.Jobs = []config.Job{{Name: "report", Schedule: "@yearly", Command: config.Command{"true"}}}
	s, err := Open(c.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	v, err := s.session().under("report")
	if err != nil {
		t.Fatal(err)
	}
	request := redisledger.Request{Job: "report", ID: "0b9b3f6e-6f0a-4c43-8d5e-3c1f6b1d8a52", By: "by alice"}
	if err := v.Ledger.Request(t.Context(), request, AskFor); err != nil {
		t.Fatal(err)
	}
	for _, which := range []string{"first", "second"} {
		if run, err := v.withdraw(t.Context(), request, "a", nil); err == nil || !strings.Contains(err.Error(), "was withdrawn") {
			t.Errorf("the %s: %+v, %v", which, run, err)
		}
	}
}
