package state

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"baton/internal/diagnose"
	"baton/internal/text"
)

// TestWhoGaveAnOrderSeesWhatItDid checks an order that comes while the state is being gathered, because that state may be from before the
// order.
func TestWhoGaveAnOrderSeesWhatItDid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var state atomic.Int64
		w := New(Config{Patience: time.Second, Log: zap.NewNop(), Source: func(context.Context) (diagnose.Snapshot, error) {
			was := state.Load()
			time.Sleep(100 * time.Millisecond)
			return diagnose.Snapshot{LockKey: "baton", Nodes: []diagnose.Node{{LastSeenAgo: text.Seconds(was)}}}, nil
		}})
		look := func() int64 {
			s, ok := w.Snapshot(t.Context())
			if !ok {
				t.Fatal("nothing is known")
			}
			return int64(s.Nodes[0].LastSeenAgo)
		}
		for order := range int64(3) {
			early := make(chan int64, 1)
			go func() { early <- look() }()
			time.Sleep(10 * time.Millisecond)
			state.Add(1)
			w.Outdate()
			if got := look(); got != state.Load() {
				t.Errorf("after order %d the state is that of %d", state.Load(), got)
			}
			if got := <-early; got < order-1 || got > state.Load() {
				t.Errorf("who asked before order %d sees the state of %d", state.Load(), got)
			}
			if got := look(); got != state.Load() {
				t.Errorf("later the state is that of %d, not %d", got, state.Load())
			}
		}
	})
}
