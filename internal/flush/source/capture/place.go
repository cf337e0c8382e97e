package capture

import (
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"

	"baton/internal/redisconn/follow"
)

// place is how far a job is, as the database keeps it: a format, which outlives an upgrade.
type place struct {
	marks []placeMark
	owed  owed
	// serial grows with every move, so that no two places look the same.
	serial uint64
}

// placeMark is how far a job is in the history of one master.
type placeMark struct {
	at follow.Position
	// seen is the highest offset at which values may have been read: they are read later than they
	// changed, and so ahead of at. It is written with the rows of these values.
	seen int64
	// slots stands for those that the master had when all keys were read last; noSlots of one that is in no
	// Cluster.
	slots string
}

const noSlots = "-"

// owed says whether all keys are to be read.
type owed byte

const (
	owesNothing owed = '-'
	owesPass    owed = 'p'
	owesDelete  owed = 'd' // and every row may go that has no key: on_flush: delete
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

// sumOf stands for the text of a place: a pass has one for each of its pages, and those of a Cluster are long.
func sumOf(text string) uint64 { return maphash.String(seed, text) }

var seed = maphash.MakeSeed()

const wordsOfMark = 5

// parsePlace reads a place; "" is before the first one, where everything is owed.
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
