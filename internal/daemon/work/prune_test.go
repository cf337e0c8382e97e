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

// fakeLedger notes when it was pruned.
type fakeLedger struct {
	name  string
	fails int
	calls *[]string
	began time.Time
}

// hangingLedger is busy until it is told to stop.
type hangingLedger struct{}

func (*hangingLedger) Prune(ctx context.Context, _ time.Duration) (int64, error) {
	<-ctx.Done()
	return 0, ctx.Err()
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
		b := &fakeLedger{name: "b", calls: &calls, began: time.Now(), fails: 1}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			pruneLedgers(ctx, zap.NewNop(), map[string]*fakeLedger{"a": a, "b": b})
		}()
		time.Sleep(26 * time.Hour)
		cancel()
		<-ended
		if want := []string{"a 1m0s", "b 1m0s", "a 1h1m0s", "b 1h1m0s", "a 25h1m0s", "b 25h1m0s"}; !slices.Equal(calls, want) {
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
		time.Sleep(time.Hour) // within the first ledger
		cancel()
		<-ended
	})
}
