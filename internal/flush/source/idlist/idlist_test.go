package idlist

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every id is in one lane, the same one in every pile, and each lane is sorted: two
// lanes must not write one row at the same time, and each writes in key order.
func TestIDsAreDealtOutToLanes(t *testing.T) {
	lanes := map[string]int{}
	for range 2 {
		pile := &List{}
		for i := range 10_000 {
			pile.Add([]byte(fmt.Sprint((i * 7919) % 10_000)))
		}
		pile.Sort()
		count := make([]int, 3)
		seen := map[string]bool{}
		last := make([]int, 3)
		for lane, page := range pile.Pages(100, 3) {
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

func TestIDsSortLikeADatabaseKey(t *testing.T) {
	for _, want := range [][]string{
		{"-100", "-20", "-3", "0", "1", "9", "10", "123456789012345678901", "9234567890123456789012"},
		{"7", "07", "007", "8"}, // one number, three ids
		{"-9223372036854775809", "-9223372036854775808", "9223372036854775807", "9223372036854775808"},
		{"some-body1", "some-body10", "some-body2"},
		{"", "10", "9"}, // not all integers: by bytes
		{"10", "9", "a"},
		{"-", "1"},
		{"1", "é", "日"},
	} {
		for range 10 {
			ids := slices.Concat(want, want[:1]) // a duplicate is dropped
			rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
			var pile List
			for _, id := range ids {
				pile.Add([]byte(id))
			}
			pile.Sort()
			var got []string
			for _, page := range pile.Pages(2, 1) {
				got = append(got, page...)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatal(diff)
			}
		}
	}
}
