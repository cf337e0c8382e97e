package progress

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/flush/verify"
	"baton/internal/redisledger"
)

// fakePreviews keeps the last record of a preview. Each record takes some time.
type fakePreviews struct {
	takes time.Duration
	fails error
	tries int
	last  redisledger.OperationState
}

func (f *fakePreviews) KeepPreview(ctx context.Context, s redisledger.OperationState) error {
	f.tries++
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(f.takes):
	}
	if f.fails == nil {
		f.last = s
	}
	return f.fails
}

func (f *fakePreviews) DropPreview(context.Context, string) error { return f.fails }

// The Redis of the lock may hang for hours while the preview reads another Redis.
func TestARedisThatHangsHardlySlowsAPreview(t *testing.T) {
	for takes, least := range map[time.Duration]int{0: 3600, time.Minute: 10} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakePreviews{takes: takes}
			g, began := Progress{ledger: f}, time.Now()
			for range 3600 {
				g.Reached(t.Context(), verify.State{Part: 0.5})
				time.Sleep(time.Second)
			}
			if took := time.Since(began); took > 4000*time.Second || f.tries < least || (g.failed != nil) != (takes > 0) {
				t.Errorf("an hour of work takes %s if a record takes %s: %d records, %v", took, takes, f.tries, g.failed)
			}
		})
	}
}

// A preview may show any number of examples, but it does not put them all into Redis.
func TestTheRecordOfAPreviewIsBounded(t *testing.T) {
	f := &fakePreviews{}
	g := Progress{ledger: f}
	g.keep(t.Context(), verify.State{Part: 0.5, Result: verify.Result{
		Missing: 5000, Examples: slices.Repeat([]verify.Example{{Kind: verify.Missing}}, 5000),
	}})
	for wanted, noted := range map[int]bool{mostExamples: false, mostExamples + 1: true} {
		g := Progress{ledger: f}
		from := g.Begin(&f.last, true, wanted)
		found := strings.Contains(strings.Join(g.Notes, "\n"), "fewer examples")
		if found != noted || len(from.Result.Examples) != mostExamples {
			t.Errorf("with %d examples of each kind: %d are recorded, %q", wanted, len(from.Result.Examples), g.Notes)
		}
	}
}

// A preview that is interrupted before its first record names the record of an earlier one.
func TestAnInterruptedPreviewNamesTheRecordThatExists(t *testing.T) {
	away := errors.New("redis is away")
	for _, resume := range []bool{false, true} {
		f := &fakePreviews{fails: away}
		g := Progress{ledger: f}
		g.Begin(&redisledger.OperationState{Progress: json.RawMessage(`{"part": 0.25}`)}, resume, 5)
		if err := g.End(t.Context(), verify.State{}, away); !errors.Is(err, away) || !strings.Contains(err.Error(), "interrupted at 25 %") {
			t.Errorf("resume %v: %v", resume, err)
		}
		if f.tries != 0 {
			t.Error("the earlier record was replaced by a state without progress")
		}
	}
	g := Progress{ledger: &fakePreviews{fails: away}}
	if err := g.End(t.Context(), verify.State{}, away); err.Error() != away.Error() {
		t.Errorf("without a record: %v", err)
	}
}
