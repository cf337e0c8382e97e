// Package idlist collects the ids of rows, without Redis. It sorts them in the order of a database's key, cuts them into pages, and assigns
// each id to a lane and a part.
//
//	List  ids in one text, with the place of each id in that text
//	Pass  reads the ids of a pass over a source in several lists; while one list is used, the next list is collected
//	Part  returns the number of the part that an id belongs to, by the hash of the id
//
// The invariants:
//
//   - If all ids of a list are integers, they are sorted by number, otherwise by bytes. So the rows of a page are neighbours in the table.
//   - An id has the same lane in every list. So all writes of a row are made in order.
//   - The order of the ids and the results of Part must not change between versions, because parts of existing stages depend on them.
//
// What fails, and what then:
//
//   - A scan returns an id twice: Sort removes the duplicate if both are in the same list. Otherwise the row is read twice, which is
//     harmless because its present state is read.
//   - The ids exceed the memory budget: the list is full, and further ids are collected in the next list.
//   - The ids are long: the next list is collected only after the present list was used, because both lists would need too much memory.
package idlist

import (
	"bytes"
	"encoding/binary"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"baton/internal/flush/row"
)

// List collects ids and sorts them. It has no pointer for each id, because the garbage collector would follow a million pointers repeatedly
// while pages are written.
type List struct {
	text     []byte
	places   []row.Ranked // the places of the ids in text
	integers bool         // all ids are integers; known after Sort
}

// Sized returns a list with room for about that many ids.
func Sized(n int) *List { return &List{places: make([]row.Ranked, 0, n)} }

// Cost is the memory of an id in bytes, without its text: a place, a second place while ids are sorted, and the spare capacity of the
// slices.
const Cost = 40

// bytes returns the number of bytes of memory that the list uses.
func (p *List) bytes() int { return len(p.text) + Cost*len(p.places) }

// Full reports whether another id would exceed the budget. At 1 GiB a list is full in any case, because a place can address only 4 GiB of
// text, and an id in Redis may have 512 MiB.
func (p *List) Full(budget int) bool {
	return p.bytes() >= min(budget, 1<<30) || len(p.text) >= 2*longText || p.long() && len(p.text) >= longText
}

// longText is the number of bytes of text that fill a list of long ids. The limit is low, because several copies of long ids exist at the
// same time, and sorting long ids saves less time. A list of shorter ids may have twice as much text. Ids are long if they have longID
// bytes on average. A list of very long ids allocates all of its memory at once. Long ids are not copied when they are returned.
const longText, longID = 4 << 20, 1 << 10

func (p *List) long() bool { return len(p.text) >= longID*max(1, len(p.places)) }

// Len returns the number of ids.
func (p *List) Len() int { return len(p.places) }

// Add adds an id.
func (p *List) Add(id []byte) {
	p.place(len(id))
	p.text = append(p.text, id...)
}

// AddText adds an id.
func (p *List) AddText(id string) {
	p.place(len(id))
	p.text = append(p.text, id...)
}

// place adds the place of an id whose length in bytes is size, and makes room for the id.
func (p *List) place(size int) {
	p.places = append(p.places, row.Ranked{At: uint32(len(p.text)), Size: uint32(size)})
	if size >= 64*longID && cap(p.text)-len(p.text) < size {
		// The capacity is not doubled step by step, because each step would leave an old buffer in memory. A reply may have a few more ids
		// than fill the list, but only few of them are huge.
		room := 2 * size
		if size >= longText {
			room = size
		}
		p.text = append(make([]byte, 0, max(longText, len(p.text)+room)), p.text...)
	}
}

func (p *List) id(at row.Ranked) []byte { return p.text[at.At : at.At+at.Size] }

// AddAt adds an id that is a part of a text. The caller collects the text, and sets it with [List.Over].
func (p *List) AddAt(at, size int) {
	p.places = append(p.places, row.Ranked{At: uint32(at), Size: uint32(size)})
}

// Over sets the text that contains the ids which AddAt has added.
func (p *List) Over(text []byte) *List {
	p.text = text
	return p
}

// Each yields the place and the length of each id in the text.
func (p *List) Each() iter.Seq2[int, int] {
	return func(yield func(at, size int) bool) {
		for _, at := range p.places {
			if !yield(int(at.At), int(at.Size)) {
				return
			}
		}
	}
}

// At returns the i-th id.
func (p *List) At(i int) []byte { return p.id(p.places[i]) }

// Range returns a list of the ids with the indexes from..to-1.
func (p *List) Range(from, to int) *List { return &List{text: p.text, places: p.places[from:to]} }

// Integers reports whether the list was sorted by number.
func (p *List) Integers() bool { return p.integers }

// Compare compares two ids in the order of Sort. The argument integers says whether Sort sorts the ids by number.
func Compare(a []byte, b string, integers bool) int {
	if integers {
		return compareIntegers(string(a), b)
	}
	return strings.Compare(string(a), b)
}

// Sort sorts the ids in the order of a database's key: by number if all of them are integers (of any size), otherwise by bytes. The parts
// of a stage depend on this order; for other lists the order only saves time. Sort also removes duplicates, since a scan may return an id
// more than once.
func (p *List) Sort() {
	order := func(a, b []byte) int { return compareIntegers(string(a), string(b)) }
	integers := true
	for i := 0; i < len(p.places) && integers; i++ {
		p.places[i].Rank, integers = rankOfInteger(p.id(p.places[i]))
	}
	if !integers {
		order = bytes.Compare
		for i := range p.places {
			p.places[i].Rank = rankOfBytes(p.id(p.places[i]))
		}
	}
	p.integers = integers
	p.places, _ = row.SortRanked(p.places, nil)
	for rest := p.places; len(rest) > 0; { // sorts the ids that have the same rank
		n := row.SameRank(rest)
		if n > 1 {
			slices.SortFunc(rest[:n], func(a, b row.Ranked) int { return order(p.id(a), p.id(b)) })
		}
		rest = rest[n:]
	}
	p.places = slices.CompactFunc(p.places, func(a, b row.Ranked) bool {
		return a.Rank == b.Rank && bytes.Equal(p.id(a), p.id(b))
	})
}

// Pages divides the ids into pages of n ids. All ids of a page belong to one lane, and the pages of the lanes alternate. An id has the same
// lane in every list.
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

// split distributes the ids over the lanes. Each lane keeps their order.
func (p *List) split(lanes int) [][]row.Ranked {
	if lanes <= 1 {
		return [][]row.Ranked{p.places}
	}
	out := make([][]row.Ranked, lanes)
	for _, at := range p.places {
		lane := laneOf(p.id(at), lanes)
		out[lane] = append(out[lane], at)
	}
	return out
}

// laneOf returns the lane that writes the row of an id. The lowest bits of Part's hash differ little between similar ids, so laneOf uses
// the higher bits.
func laneOf(id []byte, lanes int) int {
	const range20 = 1 << 20
	return Part(id, range20) * lanes / range20
}

// texts returns the ids at the places. All of them share one allocation, which is the list's text if the ids are long, and otherwise a new
// one.
func (p *List) texts(places []row.Ranked) []string {
	if p.long() {
		return p.inPlace(places)
	}
	size := 0
	for _, at := range places {
		size += int(at.Size)
	}
	var all strings.Builder
	all.Grow(size)
	for _, at := range places {
		all.Write(p.id(at))
	}
	texts := all.String()
	ids := make([]string, len(places))
	for i, at := range places {
		ids[i], texts = texts[:at.Size], texts[at.Size:]
	}
	return ids
}

// inPlace returns ids as parts of the list's text. From then on the text must not change.
func (p *List) inPlace(places []row.Ranked) []string {
	text := unsafe.String(unsafe.SliceData(p.text), len(p.text)) //nolint:gosec // nothing writes there any more
	ids := make([]string, len(places))
	for i, at := range places {
		ids[i] = text[at.At : at.At+at.Size]
	}
	return ids
}

// rankOfBytes and rankOfInteger map an id to its rank, a number that has the same order as the ids. Different ids may have the same rank.
func rankOfBytes(id []byte) uint64 {
	var first [8]byte
	copy(first[:], id)
	return binary.BigEndian.Uint64(first[:])
}

// rankOfInteger returns false for an id that is no integer.
func rankOfInteger(id []byte) (rank uint64, ok bool) {
	digits, n := bytes.TrimPrefix(id, []byte("-")), int64(0)
	for i := range digits {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, false
		}
		n = 10*n + int64(digits[i]-'0') // an overflow is handled below
	}
	if len(digits) > 18 {
		n, _ = strconv.ParseInt(string(id), 10, 64) // for a number out of range, ParseInt returns the nearest number, which keeps the order
	} else if len(digits) < len(id) {
		n = -n
	}
	return uint64(n) ^ 1<<63, len(digits) > 0
}

// compareIntegers orders integers by their value: "-7" < "7" < "10". It also orders different texts with the same value ("7" < "07"), so
// that only identical texts are equal.
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

// Part returns the number of the part that a field belongs to. The argument parts is the number of parts. The result depends only on the
// two arguments, and must not change between versions: see parts.Partitioner.
func Part(field []byte, parts int) int {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for _, b := range field {
		h = (h ^ uint64(b)) * prime
	}
	return int(h % uint64(parts))
}
