package crash

import (
	"path/filepath"
	"slices"
	"testing"
)

// After a crash there is a lease file for each lock that the daemon led.
func TestTheLeaseFileOfEveryLockIsFound(t *testing.T) {
	own := filepath.Join(t.TempDir(), "lease.json")
	want := []string{own, LeasePathOf(own, "reports"), LeasePathOf(own, "mails")}
	for _, path := range want {
		if err := WriteLease(path, Lease{LockKey: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	got := leasePaths(own)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
