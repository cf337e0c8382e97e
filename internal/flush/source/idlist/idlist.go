// Package idlist collects the ids of rows, without Redis: in the order of a database's key,
// in pages, and each in one lane and part.
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

// List collects ids and sorts them. It has no pointer for each id: the garbage collector would follow a million of them again and again
// while pages are written.
type List struct {
	text     []byte
	places   []row.Ranked // the places of the texts
	integers bool         // all ids are integers; known after Sort
}

// Sized makes a list for about that many ids.
func Sized(n int) *List { return &List{places: make([]row.Ranked, 0, n)} }

// Cost is the memory of an id beside its text: a place, another one while they are sorted, and the spare capacity of the slices.
const Cost = 40

// bytes is the memory of the list.
func (p *List) bytes() int { return len(p.text) + Cost*len(p.places) }

// Full reports whether another id would be too much. Places reach 4 GiB of text; Redis itself has no id longer than 512 MiB.
func (p *List) Full(budget int) bool {
	return p.bytes() >= min(budget, 1<<30) || len(p.text) >= 2*longText || p.long() && len(p.text) >= longText
}

// longText is how much text of long ids fills a list: several copies are held on their way, and their order saves less. For shorter ids
// it is twice as much. Ids of longID bytes on average are long: their list takes room at once for all that it may have, and they are read
// in place.
const longText, longID = 4 << 20, 1 << 10

func (p *List) long() bool { return len(p.text) >= longID*max(1, len(p.places)) }

// Len is how many ids there are.
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

// place makes room for an id of that many bytes.
func (p *List) place(size int) {
	p.places = append(p.places, row.Ranked{At: uint32(len(p.text)), Size: uint32(size)})
	if size >= 64*longID && cap(p.text)-len(p.text) < size {
		// Not by doubling: each step would leave a buffer behind. A reply may have a few more ids than fill the list, and few of huge
		// ones.
		room := 2 * size
		if size >= longText {
			room = size
		}
		p.text = append(make([]byte, 0, max(longText, len(p.text)+room)), p.text...)
	}
}

func (p *List) id(at row.Ranked) []byte { return p.text[at.At : at.At+at.Size] }

// AddAt adds an id that is a part of a text which the caller collects: see [List.Over].
func (p *List) AddAt(at, size int) {
	p.places = append(p.places, row.Ranked{At: uint32(at), Size: uint32(size)})
}

// Over sets that text.
func (p *List) Over(text []byte) *List {
	p.text = text
	return p
}

// Each yields the places of the ids in the text.
func (p *List) Each() iter.Seq2[int, int] {
	return func(yield func(at, size int) bool) {
		for _, at := range p.places {
			if !yield(int(at.At), int(at.Size)) {
				return
			}
		}
	}
}

// At is the id at that place.
func (p *List) At(i int) []byte { return p.id(p.places[i]) }

// Range is the list of the ids from one place up to another.
func (p *List) Range(from, to int) *List { return &List{text: p.text, places: p.places[from:to]} }

// Integers reports whether the list was sorted by number.
func (p *List) Integers() bool { return p.integers }

// Compare compares two ids as Sort does.
func Compare(a []byte, b string, integers bool) int {
	if integers {
		return compareIntegers(string(a), b)
	}
	return strings.Compare(string(a), b)
}

// Sort sorts the ids as a database's key would: by number if all of them are integers (of any size), otherwise by bytes. Parts of a stage
// depend on it, everything else only gains speed. It also drops all duplicates of an id: a scan may return an id more than once.
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
	for rest := p.places; len(rest) > 0; { // the ids of one rank
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

// Pages cuts the ids into pages of n, each of one lane; the lanes take turns. An id has the same lane in every list.
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

// laneOf is the lane that writes the row of an id. The lowest bits of Part's hash differ little
// between similar ids, so it uses the higher ones.
func laneOf(id []byte, lanes int) int {
	const range20 = 1 << 20
	return Part(id, range20) * lanes / range20
}

// texts are ids in one allocation: that of the list if they are long, otherwise one of their own.
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

// inPlace are ids within the text, which does not change any more.
func (p *List) inPlace(places []row.Ranked) []string {
	text := unsafe.String(unsafe.SliceData(p.text), len(p.text)) //nolint:gosec // nothing writes there any more
	ids := make([]string, len(places))
	for i, at := range places {
		ids[i] = text[at.At : at.At+at.Size]
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

// rankOfInteger returns false for an id that is no integer.
func rankOfInteger(id []byte) (rank uint64, ok bool) {
	digits, n := bytes.TrimPrefix(id, []byte("-")), int64(0)
	for i := range digits {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, false
		}
		n = 10*n + int64(digits[i]-'0') // too many digits: see below
	}
	if len(digits) > 18 {
		n, _ = strconv.ParseInt(string(id), 10, 64) // out of range: the nearest number, which serves as well
	} else if len(digits) < len(id) {
		n = -n
	}
	return uint64(n) ^ 1<<63, len(digits) > 0
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

// Part is the part of a field, among that many parts: a format that Counters documents.
func Part(field []byte, parts int) int {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for _, b := range field {
		h = (h ^ uint64(b)) * prime
	}
	return int(h % uint64(parts))
}
