package jobtest_test

import (
	"testing"

	"baton/internal/job"
	"baton/internal/job/jobtest"
)

func TestLedgerInMemory(t *testing.T) {
	jobtest.Conformance(t, func(*testing.T) (job.Ledger, func(string)) {
		l := jobtest.NewLedger("")
		return l, l.SetOwner
	})
}
