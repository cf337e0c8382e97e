package capture

import (
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"

	"baton/internal/redisconn/follow"
)

// place is the position of a job, as the database keeps it: the format must survive upgrades.
type place struct {
	marks []placeMark
	owed  owed
	// serial grows with every move, so that no two places look the same.
	serial uint64
}

// placeMark is the position of a job in the history of one master.
type placeMark struct {
	at follow.Position
	// seen is the highest offset at which values may have been read: values are read later than they changed, and so seen is ahead of at.
	// It is written in the transaction of these values' rows.
	seen int64
	// slots are the master's slots at the last pass over all keys, as a short text; noSlots outside a Cluster.
	slots string
}

const noSlots = "-"

// owed tells whether a pass over all keys is owed.
type owed byte

const (
	owesNothing owed = '-'
	owesPass    owed = 'p'
	owesDelete  owed = 'd' // and it may delete every row without a key: on_flush: delete
)

// String is the place as the database keeps it.
func (p place) String() string {
	var b strings.Builder
	for _, m := range p.marks {
		fmt.Fprintf(&b, "%s %d %d %d %s ", m.at.ReplID, m.at.Offset, m.at.DB, m.seen, m.slots)
	}
	fmt.Fprintf(&b, "%c %d", p.owed, p.serial)
	return b.String()
}

// sumOf is a checksum of a place's text: a pass has a place for each of its pages, and the texts of a Cluster are long.
func sumOf(text string) uint64 { return maphash.String(seed, text) }

var seed = maphash.MakeSeed()

const wordsOfMark = 5

// parsePlace reads a place; "" is the one before the first, where a pass is owed.
func parsePlace(text string) (p place, err error) {
	if text == "" {
		return place{owed: owesPass}, nil
	}
	words := strings.Fields(text)
	ok := len(words) >= 2 && len(words)%wordsOfMark == 2
	number := func(word string) int64 {
		n, err := strconv.ParseInt(word, 10, 64)
		ok = ok && err == nil
		return n
	}
	for ; ok && len(words) > 2; words = words[wordsOfMark:] {
		m := placeMark{at: follow.Position{ReplID: words[0], Offset: number(words[1]), DB: int(number(words[2]))}, seen: number(words[3]),
			slots: words[4]}
		ok = ok && m.at.Offset >= 0 && m.seen >= 0
		p.marks = append(p.marks, m)
	}
	if ok {
		p.owed = owed(words[0][0])
		p.serial, err = strconv.ParseUint(words[1], 10, 64)
		ok = err == nil && (p.owed == owesNothing || p.owed == owesPass || p.owed == owesDelete)
	}
	if !ok || p.String() != text {
		return p, fmt.Errorf("%q is not a position in a replication stream: was it written by a later version of baton?", text)
	}
	return p, nil
}
