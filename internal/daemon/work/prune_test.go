package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
)

// fakeLedger records when it was pruned.
type fakeLedger struct {
	name      string
	fails     int
	keptFails int
	calls     *[]string
	began     time.Time
}

// hangingLedger is busy until its context ends.
type hangingLedger struct{}

func (*hangingLedger) Prune(ctx context.Context, _ time.Duration) (int64, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

func (*hangingLedger) PruneKept(context.Context) (int64, error) { return 0, nil }

func (f *fakeLedger) PruneKept(context.Context) (int64, error) {
	*f.calls = append(*f.calls, f.name+" kept")
	if f.keptFails--; f.keptFails >= 0 {
		return 0, errors.New("away")
	}
	return 1, nil
}

func (f *fakeLedger) Prune(_ context.Context, olderThan time.Duration) (int64, error) {
	*f.calls = append(*f.calls, fmt.Sprintf("%s %v", f.name, time.Since(f.began)))
	if f.fails--; f.fails >= 0 {
		return 0, errors.New("away")
	}
	if olderThan < 7*24*time.Hour {
		return 0, errors.New("too young")
	}
	return 1, nil
}

func TestLedgersArePrunedOnceATermAndDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []string
		a := &fakeLedger{name: "a", calls: &calls, began: time.Now()}
		b := &fakeLedger{name: "b", calls: &calls, began: time.Now(), fails: 1, keptFails: 2}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			pruneLedgers(ctx, zap.NewNop(), map[string]*fakeLedger{"a": a, "b": b})
		}()
		time.Sleep(27 * time.Hour)
		cancel()
		<-ended
		if want := []string{
			"a 1m0s", "a kept", "b 1m0s", "b kept", "a 1h1m0s", "a kept", "b 1h1m0s", "b kept", // either pruning failed: again soon
			"a 2h1m0s", "a kept", "b 2h1m0s", "b kept", "a 26h1m0s", "a kept", "b 26h1m0s", "b kept",
		}; !slices.Equal(calls, want) {
			t.Errorf("pruned %v, want %v", calls, want)
		}
	})
}

func TestPruningEndsWithTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			pruneLedgers(ctx, zap.NewNop(), map[string]*hangingLedger{"a": {}, "b": {}})
		}()
		time.Sleep(time.Hour) // the time passes while the first ledger is pruned
		cancel()
		<-ended
	})
}
