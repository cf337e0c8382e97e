package web

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestAFeedIsFilledOnceForAllItsReadersAsLongAsThereAreAny checks that readers of one key share one goroutine, which ends with the last
// reader, and that too many readers are refused.
func TestAFeedIsFilledOnceForAllItsReadersAsLongAsThereAreAny(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		filling := map[string]*atomic.Int64{"a": {}, "b": {}}
		life, end := context.WithCancel(t.Context())
		feeds := NewFeeds(Source[string, int]{
			Most: 3, Life: life, Begin: func(f func()) bool { go f(); return life.Err() == nil },
			Open: func(key string) func(context.Context, *Feed[int]) {
				if key == "none" {
					return nil
				}
				return func(ctx context.Context, f *Feed[int]) {
					filling[key].Add(1)
					for i := range 3 {
						f.Put(i)
					}
					<-ctx.Done()
					filling[key].Add(-1)
				}
			},
		})
		first, leave, _ := feeds.Join("a")
		again, leaveAgain, _ := feeds.Join("a")
		synctest.Wait()
		if value, version, _, over := first.Latest(); first != again || filling["a"].Load() != 1 || value != 2 || version != 3 || over {
			t.Errorf("filled %d times: value %d of %d, over %t", filling["a"].Load(), value, version, over)
		}
		if _, _, ok := feeds.Join("none"); ok {
			t.Error("a feed that cannot be filled is read")
		}
		_, leaveOther, _ := feeds.Join("b")
		if _, _, ok := feeds.Join("b"); ok {
			t.Error("one reader too many")
		}
		leave()
		leave() // a second call has no effect
		if n, readers := feeds.Count(); n != 2 || readers != 2 {
			t.Errorf("%d feeds, %d readers", n, readers)
		}
		leaveAgain()
		synctest.Wait()
		if _, _, changed, over := first.Latest(); filling["a"].Load() != 0 || filling["b"].Load() != 1 || !over {
			t.Errorf("filled without readers: %d, over %t", filling["a"].Load(), over)
		} else {
			<-changed
		}
		end()
		leaveOther()
		if _, _, ok := feeds.Join("a"); ok {
			t.Error("read after the end")
		}
		synctest.Wait()
	})
}
