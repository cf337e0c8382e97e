package capture

import (
	"fmt"

	"baton/internal/redisconn/follow"
)

// place is how far a job is, as the database keeps it: a format, which outlives an upgrade.
type place struct {
	at follow.Position
	// seen is the highest offset at which values may have been read: they are read later than they
	// changed, and so ahead of at. It is written with the rows of these values.
	seen int64
	owed owed
	// serial grows with every move, so that no two places look the same.
	serial uint64
}

// owed says whether all keys are to be read.
type owed byte

const (
	owesNothing owed = '-'
	owesPass    owed = 'p'
	owesDelete  owed = 'd' // and every row may go that has no key: on_flush: delete
)

// String is the place as the database keeps it.
func (p place) String() string {
	return fmt.Sprintf("%s %d %d %d %c %d", p.at.ReplID, p.at.Offset, p.at.DB, p.seen, p.owed, p.serial)
}

// parsePlace reads a place; "" is before the first one, where everything is owed.
func parsePlace(text string) (p place, err error) {
	if text == "" {
		return place{owed: owesPass}, nil
	}
	var rest string
	n, err := fmt.Sscanf(text+" .", "%s %d %d %d %c %d %s", &p.at.ReplID, &p.at.Offset, &p.at.DB, &p.seen, &p.owed, &p.serial, &rest)
	known := p.owed == owesNothing || p.owed == owesPass || p.owed == owesDelete
	if err != nil || n != 7 || rest != "." || !known || p.at.Offset < 0 || p.seen < 0 {
		return p, fmt.Errorf("%q is not a position in a replication stream: was it written by a later version of baton?", text)
	}
	return p, nil
}
