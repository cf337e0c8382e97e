package flush_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"baton/internal/flush"
	"baton/internal/flush/flushtest"
	"baton/internal/flush/row"
)

// After a page with one huge record, nothing is read before that page has left its stage, or has failed to leave its stage. After that the
// record must no longer be in memory.
func TestNothingIsReadAheadOfAHugeRecord(t *testing.T) {
	name := strings.Repeat("x", 8<<20)
	for _, ok := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var calls []string
			note := func(call string) {
				mu.Lock()
				defer mu.Unlock()
				calls = append(calls, call)
			}
			pages := []flush.Page{user("1", name), user("2", name), user("3", "c")}
			s := flushtest.NewScript("s", pages...)
			s.On = func(call string) error {
				if call == "taken" && pages[0].Records[0].Size() > 0 {
					t.Error("the huge record is still there")
				}
				if slices.Contains([]string{"page", "done"}, call) {
					note(call)
				}
				if call == "done" && !ok {
					return errRefused
				}
				return nil
			}
			cfg, db := users(s)
			sink := &fakeSink{base: db}
			cfg.Sink = &sinkFunc{sink, func(ctx context.Context, f flush.Fence, p *row.Plan, b flush.Batch) (flush.Outcome, error) {
				synctest.Wait() // the reader has read as much as it can
				note("written")
				return sink.Apply(ctx, f, p, b)
			}}
			got, err := mustNew(t, cfg).Run(t.Context(), leader(1))
			switch all := strings.Join(calls, " "); {
			case ok && (err != nil || got.Rows != 3 || all != "page written done page written done page written done"):
				t.Errorf("%+v, %v after %s", got, err, all)
			case !ok && (!errors.Is(err, errRefused) || !strings.HasPrefix(all, "page written done")):
				t.Errorf("%+v, %v after %s", got, err, all)
			}
		})
	}
}
