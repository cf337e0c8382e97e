package capture

import (
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"

	"baton/internal/redisconn/follow"
)

// jobPosition is the position of a job, as the database stores it. New versions of baton must be able to read its present format.
type jobPosition struct {
	masters []masterPosition
	owed    passOwed
	// serial grows with every move, so that no two positions are equal.
	serial uint64
}

// masterPosition is the position of a job in the history of one master.
type masterPosition struct {
	at follow.Position
	// seen is the highest offset of values that may have been read. A value is read after it has changed, so seen can be higher than the
	// offset of at. The field seen is written in the transaction of these values' rows.
	seen int64
	// slots is a short text for the master's slots at the last pass over all keys. Outside a Cluster it is noSlots.
	slots string
}

const noSlots = "-"

// passOwed says whether a pass over all keys is required.
type passOwed byte

const (
	owesNothing passOwed = '-'
	owesPass    passOwed = 'p'
	owesDelete  passOwed = 'd' // and the pass may delete every row without a key (on_flush: delete)
)

// String returns the position in the form that the database stores.
func (p jobPosition) String() string {
	var b strings.Builder
	for _, m := range p.masters {
		fmt.Fprintf(&b, "%s %d %d %d %s ", m.at.ReplID, m.at.Offset, m.at.DB, m.seen, m.slots)
	}
	fmt.Fprintf(&b, "%c %d", p.owed, p.serial)
	return b.String()
}

// sumOf returns a checksum of a position's text. A checksum is kept instead of the text, because a pass has a position for each page, and
// the texts of a Cluster are long.
func sumOf(text string) uint64 { return maphash.String(seed, text) }

var seed = maphash.MakeSeed()

const wordsOfMark = 5

// parsePosition parses a position. "" is the position before the first reading, so a pass over all keys is required.
func parsePosition(text string) (p jobPosition, err error) {
	if text == "" {
		return jobPosition{owed: owesPass}, nil
	}
	words := strings.Fields(text)
	ok := len(words) >= 2 && len(words)%wordsOfMark == 2
	number := func(word string) int64 {
		n, err := strconv.ParseInt(word, 10, 64)
		ok = ok && err == nil
		return n
	}
	for ; ok && len(words) > 2; words = words[wordsOfMark:] {
		m := masterPosition{
			at:    follow.Position{ReplID: words[0], Offset: number(words[1]), DB: int(number(words[2]))},
			seen:  number(words[3]),
			slots: words[4],
		}
		ok = ok && m.at.Offset >= 0 && m.seen >= 0
		p.masters = append(p.masters, m)
	}
	if ok {
		p.owed = passOwed(words[0][0])
		p.serial, err = strconv.ParseUint(words[1], 10, 64)
		ok = err == nil && (p.owed == owesNothing || p.owed == owesPass || p.owed == owesDelete)
	}
	if !ok || p.String() != text {
		return p, fmt.Errorf("%q is not a position in a replication stream: was it written by a later version of baton?", text)
	}
	return p, nil
}
