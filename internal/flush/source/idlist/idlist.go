// Package idlist collects the ids of rows, without Redis: in the order of a database's key,
// in pages, and each in one lane and part.
package idlist

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// List collects ids and sorts them. It has no pointer for each id: the garbage
// collector would follow a million of them again and again while pages are written.
type List struct {
	text   []byte
	places []idPlace
}

// idPlace is where the text of an id is, and as much of its order as fits.
type idPlace struct {
	rank     uint64
	at, size uint32
}

// Cost is what an id takes beside its text: a place, and the spare capacity of
// the slices.
const Cost = 24

// bytes is what the pile takes.
func (p *List) bytes() int { return len(p.text) + Cost*len(p.places) }

// Full says whether another id would be too much. Places reach 4 GiB of text; Redis
// itself has no id longer than 512 MiB.
func (p *List) Full(budget int) bool { return p.bytes() >= min(budget, 1<<30) }

// Len is how many ids there are.
func (p *List) Len() int { return len(p.places) }

// Add takes in an id.
func (p *List) Add(id []byte) {
	p.places = append(p.places, idPlace{at: uint32(len(p.text)), size: uint32(len(id))})
	p.text = append(p.text, id...)
}

func (p *List) id(at idPlace) []byte { return p.text[at.at : at.at+at.size] }

// Sort sorts the ids as a database's key would: by number if all of them are
// integers (of any size), else by bytes. Only speed depends on it. It also drops
// duplicates: a scan may return an id more than once.
func (p *List) Sort() {
	rank, order := rankOfInteger, func(a, b []byte) int { return compareIntegers(string(a), string(b)) }
	if slices.ContainsFunc(p.places, func(at idPlace) bool { return !isInteger(p.id(at)) }) {
		rank, order = rankOfBytes, bytes.Compare
	}
	for i := range p.places {
		p.places[i].rank = rank(p.id(p.places[i]))
	}
	slices.SortFunc(p.places, func(a, b idPlace) int {
		if a.rank != b.rank {
			return cmp.Compare(a.rank, b.rank)
		}
		return order(p.id(a), p.id(b))
	})
	p.places = slices.CompactFunc(p.places, func(a, b idPlace) bool { return bytes.Equal(p.id(a), p.id(b)) })
}

// Pages cuts the ids into pages of n, each of one lane; the lanes take turns. An id
// has the same lane in every pile.
func (p *List) Pages(n, lanes int) iter.Seq2[int, []string] {
	return func(yield func(lane int, ids []string) bool) {
		left := p.split(lanes)
		for more := true; more; {
			more = false
			for lane, places := range left {
				if len(places) == 0 {
					continue
				}
				page := places[:min(n, len(places))]
				left[lane] = places[len(page):]
				more = true
				if !yield(lane, p.texts(page)) {
					return
				}
			}
		}
	}
}

// split deals the ids out to lanes; each keeps the order.
func (p *List) split(lanes int) [][]idPlace {
	if lanes <= 1 {
		return [][]idPlace{p.places}
	}
	out := make([][]idPlace, lanes)
	for _, at := range p.places {
		lane := laneOf(p.id(at), lanes)
		out[lane] = append(out[lane], at)
	}
	return out
}

// laneOf is the lane that writes the row of an id. The lowest bits of Part's hash differ little
// between similar ids, so it uses the higher ones.
func laneOf(id []byte, lanes int) int {
	const range20 = 1 << 20
	return Part(id, range20) * lanes / range20
}

// texts are ids in one allocation.
func (p *List) texts(places []idPlace) []string {
	size := 0
	for _, at := range places {
		size += int(at.size)
	}
	var all strings.Builder
	all.Grow(size)
	for _, at := range places {
		all.Write(p.id(at))
	}
	texts := all.String()
	ids := make([]string, len(places))
	for i, at := range places {
		ids[i], texts = texts[:at.size], texts[at.size:]
	}
	return ids
}

// rankOfBytes and rankOfInteger map an id to a number in the same order, except that
// different ids may have the same rank.
func rankOfBytes(id []byte) uint64 {
	var first [8]byte
	copy(first[:], id)
	return binary.BigEndian.Uint64(first[:])
}

func rankOfInteger(id []byte) uint64 {
	n, _ := strconv.ParseInt(string(id), 10, 64) // out of range: the nearest, which is as good
	return uint64(n) ^ 1<<63
}

func isInteger(id []byte) bool {
	digits := bytes.TrimPrefix(id, []byte("-"))
	for i := range digits {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return len(digits) > 0
}

// compareIntegers orders "-7" < "7" < "07" < "10"; equal numbers by their text,
// so that only equal texts are equal.
func compareIntegers(a, b string) int {
	negative := strings.HasPrefix(a, "-")
	if other := strings.HasPrefix(b, "-"); negative != other {
		if negative {
			return -1
		}
		return 1
	}
	x := strings.TrimLeft(strings.TrimPrefix(a, "-"), "0")
	y := strings.TrimLeft(strings.TrimPrefix(b, "-"), "0")
	order := len(x) - len(y)
	if order == 0 {
		order = strings.Compare(x, y)
	}
	if negative {
		order = -order
	}
	if order == 0 {
		return strings.Compare(b, a)
	}
	return order
}

// Part is the part of so many that has a field: the format that Counters documents.
func Part(field []byte, parts int) int {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for _, b := range field {
		h = (h ^ uint64(b)) * prime
	}
	return int(h % uint64(parts))
}
