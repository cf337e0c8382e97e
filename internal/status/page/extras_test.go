package page

import (
	"context"
	"sync"
	"testing"

	"go.uber.org/zap"

	"baton/internal/diagnose"
	"baton/internal/status/state"
	"baton/internal/status/statustest"
)

// The server ends while a page is asked for. The detector of races sees a wait that another question joins too late.
func TestWhatAPageAsksBesideTheStateBeginsBeforeTheServersEndOrNever(t *testing.T) {
	for range 200 {
		w := state.New(state.Config{
			Source: statustest.Fixed(diagnose.Snapshot{}), Leading: func() bool { return false }, Log: zap.NewNop(),
		})
		k := &cached[int]{fetch: func(context.Context) (int, error) { return 1, nil }}
		var pages sync.WaitGroup
		for range 4 {
			pages.Go(func() {
				for w.Life.Err() == nil {
					k.get(t.Context(), w)
				}
			})
		}
		w.End()
		if err := w.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		pages.Wait()
	}
}
