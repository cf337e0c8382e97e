package source

import (
	"fmt"
	"slices"
	"testing"
)

// Every id is in one lane, the same one in every pile, and each lane is sorted: two
// lanes must not write one row at the same time, and each writes in key order.
func TestIDsAreDealtOutToLanes(t *testing.T) {
	lanes := map[string]int{}
	for range 2 {
		pile := &idPile{}
		for i := range 10_000 {
			pile.add([]byte(fmt.Sprint((i * 7919) % 10_000)))
		}
		pile.sort()
		count := make([]int, 3)
		seen := map[string]bool{}
		last := make([]int, 3)
		for lane, page := range pile.pages(100, 3) {
			for _, id := range page {
				if seen[id] {
					t.Fatalf("id %s came twice", id)
				}
				seen[id] = true
				if before, known := lanes[id]; known && before != lane {
					t.Fatalf("id %s was in lane %d, and now in %d", id, before, lane)
				}
				lanes[id] = lane
				var n int
				if _, err := fmt.Sscan(id, &n); err != nil || n < last[lane] {
					t.Fatalf("lane %d: %s after %d", lane, id, last[lane])
				}
				last[lane] = n
			}
			count[lane] += len(page)
		}
		if len(seen) != 10_000 || slices.Min(count) < 3000 {
			t.Errorf("%d ids in lanes of %v", len(seen), count)
		}
	}
}
