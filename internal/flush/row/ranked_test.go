package row

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestRanksAreSortedAndThoseOfOneRankStayInOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, worthCounting - 1, worthCounting, 5000} {
		for _, ranks := range []uint64{1, 7, 1 << 20, 1 << 63} {
			all := make([]Ranked, n)
			for i := range all {
				all[i] = Ranked{Rank: 1<<40 + random.Uint64N(ranks)<<1, At: uint32(i), Size: 1}
			}
			want := slices.Clone(all)
			slices.SortStableFunc(want, func(a, b Ranked) int { return cmp.Compare(a.Rank, b.Rank) })
			for _, spare := range [][]Ranked{nil, make([]Ranked, 10), make([]Ranked, 2*n)} {
				if got, _ := SortRanked(slices.Clone(all), spare); !slices.Equal(got, want) {
					t.Errorf("%d of %d ranks, with %d to spare: not in order", n, ranks, len(spare))
				}
			}
			for left := want; len(left) > 0; {
				same := SameRank(left)
				if left[same-1].Rank != left[0].Rank || same < len(left) && left[same].Rank == left[0].Rank {
					t.Errorf("%d of %d have the rank of the first", same, len(left))
				}
				left = left[same:]
			}
		}
	}
}
