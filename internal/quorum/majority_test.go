package quorum_test

import (
	"testing"
	"time"

	"baton/internal/elector"
)

// The other half of the masters may have granted the lock to another node.
func TestHalfOfTheMastersAreNoMajority(t *testing.T) {
	on(t, 4, func(t *testing.T, b *bench) {
		b.win("o0") // so that there was an earlier term
		if err := b.Release(b.ctx, "o0", elector.Handover{}); err != nil {
			t.Fatal(err)
		}
		b.links.set(hung, 0, 1)
		if a, err := b.Acquire(b.ctx, elector.Candidate{Owner: "o1", Floor: 1}); err == nil {
			t.Errorf("two of four: %+v", a)
		}
		b.links.set(nil, 1)
		time.Sleep(2 * perNode) // until the requests to this master are given up
		won := b.ask(elector.Candidate{Owner: "o2", Floor: 1})
		if won.Outcome != elector.Won {
			t.Errorf("three of four: %+v, want it won", won)
		}
		b.links.set(hung, 1)
		if _, err := b.Renew(b.ctx, won.Owner, won.Epoch); err == nil {
			t.Error("two of four renew a term")
		}
	})
}
