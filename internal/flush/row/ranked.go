package row

import (
	"cmp"
	"slices"
)

// Ranked is something to be sorted: as much of its order as fits into 64 bits, and where it is.
type Ranked struct {
	Rank     uint64
	At, Size uint32
}

// worthCounting is how many there must be for a sort that counts bytes.
const worthCounting = 256

// SortRanked sorts by rank, the lowest first, and leaves those of one rank in their order. It uses spare, as long as
// all, if there is one; of the two it returns the sorted one first.
//
// It counts bytes of the ranks, and leaves those out that all ranks have in common: most keys are numbers of one size, and
// three bytes tell them apart.
func SortRanked(all, spare []Ranked) (sorted, other []Ranked) {
	if len(all) < worthCounting {
		slices.SortStableFunc(all, func(a, b Ranked) int { return cmp.Compare(a.Rank, b.Rank) })
		return all, spare
	}
	var differ uint64
	for i := range all {
		differ |= all[i].Rank ^ all[0].Rank
	}
	if len(spare) < len(all) {
		spare = make([]Ranked, len(all))
	}
	spare = spare[:len(all)]
	for shift := 0; shift < 64; shift += 8 {
		if byte(differ>>shift) == 0 {
			continue
		}
		var begin [257]int // of each byte's places
		for i := range all {
			begin[int(byte(all[i].Rank>>shift))+1]++
		}
		for b := range 256 {
			begin[b+1] += begin[b]
		}
		for i := range all {
			b := byte(all[i].Rank >> shift)
			spare[begin[b]] = all[i]
			begin[b]++
		}
		all, spare = spare, all
	}
	return all, spare
}

// SameRank is how many of the sorted ones, of one at least, have the rank of the first.
func SameRank(sorted []Ranked) int {
	n := 1
	for n < len(sorted) && sorted[n].Rank == sorted[0].Rank {
		n++
	}
	return n
}
