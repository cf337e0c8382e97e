package status

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
)

// An order may come while the state is gathered: what that finds may be how it was before.
func TestWhoGaveAnOrderSeesWhatItDid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var state atomic.Int64
		w := newWatch(watchConfig{patience: time.Second, log: zap.NewNop(), source: func(context.Context) (Snapshot, error) {
			was := state.Load()
			time.Sleep(100 * time.Millisecond)
			return Snapshot{LockKey: "baton", Nodes: []Node{{LastSeenMSAgo: was}}}, nil
		}})
		look := func() int64 {
			s, ok := w.snapshot(t.Context())
			if !ok {
				t.Fatal("nothing is known")
			}
			return s.Nodes[0].LastSeenMSAgo
		}
		for order := range int64(3) {
			early := make(chan int64, 1)
			go func() { early <- look() }()
			time.Sleep(10 * time.Millisecond)
			state.Add(1)
			w.outdate()
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
