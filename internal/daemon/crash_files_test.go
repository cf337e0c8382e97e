package daemon

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/zap"

	"baton/internal/elector"
)

// After a power cut, nothing of a daemon tells of its term but what it has written by then.
func TestAnEpochIsWrittenAsSoonAsItIsHeardOf(t *testing.T) {
	o, _ := newObserver(t)
	path := filepath.Join(t.TempDir(), "epoch.json")
	o.epochs = openEpochs(path, "baton", zap.NewNop())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); o.keepFiles(ctx) }()
	defer func() { cancel(); <-done }()
	for _, ev := range []elector.Event{{Kind: elector.EventStandby, Holder: "b", Epoch: 15}, {Kind: elector.EventWon, Owner: "o", Epoch: 16}} {
		o.observe(ev)
		await(t, "the epoch to be in the file", func() bool { return openEpochs(path, "baton", zap.NewNop()).known().Epoch == ev.Epoch })
	}
}

// A crash leaves a lease file for each lock that the daemon led under.
func TestTheLeaseFileOfEveryLockIsFound(t *testing.T) {
	own := filepath.Join(t.TempDir(), "lease.json")
	want := []string{own, leasePathOf(own, "reports"), leasePathOf(own, "mails")}
	for _, path := range want {
		if err := writeLease(path, lease{LockKey: "x"}); err != nil {
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
