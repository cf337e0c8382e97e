package quorum_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/elector"
)

// A node that steps down lets others go first until another node has led. Rivals that divide the masters among themselves, and give
// their grants back, have not led.
func TestWhoeverStepsDownDoesNotComeBackBetweenRivals(t *testing.T) {
	t.Parallel()
	for _, oneWay := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond} {
		t.Run(fmt.Sprint(oneWay), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const rounds = 15
				m := newMasters(5, timing.TTL)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				wins := make(chan string, 10)
				var nodes []*node
				for _, id := range []string{"a", "b", "c", "d"} {
					nodes = append(nodes, start(t, id, m.lock(t, id, timing.TTL, jitter(oneWay)), m.hints(ctx), func(ctx context.Context, _ *elector.Term) error {
						wins <- id
						<-ctx.Done()
						return nil
					}))
				}
				leader, again := <-wins, 0
				for range rounds {
					time.Sleep(3 * timing.TTL)
					m.order(elector.Order{StepDown: true})
					next := <-wins
					if next == leader {
						again++
					}
					leader = next
				}
				if again > 0 {
					t.Errorf("after %d of %d step-downs the same node led again, although three others are there", again, rounds)
				}
				for _, n := range nodes {
					n.stop()
				}
				time.Sleep(time.Second)
			})
		})
	}
}
