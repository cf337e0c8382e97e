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

// TestWhatAPageAsksBesideTheStateBeginsBeforeTheServersEndOrNever ends the server while a page asks for more data. The race detector finds
// a wait that another request joins too late.
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
