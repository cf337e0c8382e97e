package row

import (
	"cmp"
	"slices"
)

// Ranked is an element to sort. Rank is a number of 64 bits that has the same order as the elements, as far as 64 bits can distinguish
// them. The fields At and Size say where the caller stores the element.
type Ranked struct {
	Rank     uint64
	At, Size uint32
}

// worthCounting is the minimum number of elements that SortRanked sorts by counting bytes. For fewer elements this method is not faster.
const worthCounting = 256

// SortRanked sorts by rank, the lowest rank first, and keeps the order of elements with the same rank. It uses the slice spare as memory,
// or makes a slice if spare is shorter than the slice all. It returns the sorted slice, and the other slice for the next call.
//
// It sorts by one byte of the ranks after the other, and skips the bytes that are equal in all ranks. Most keys are numbers of similar
// size, which differ in only three bytes.
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
		var begin [257]int // where the elements with each byte begin
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

// SameRank returns how many of the sorted elements have the same rank as the first. There must be at least one element.
func SameRank(sorted []Ranked) int {
	n := 1
	for n < len(sorted) && sorted[n].Rank == sorted[0].Rank {
		n++
	}
	return n
}
