package source

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// entryID is the id of a stream's entry. The zero id is before all entries.
type entryID struct{ ms, seq uint64 }

func (id entryID) String() string { return fmt.Sprintf("%d-%d", id.ms, id.seq) }

func (id entryID) compare(other entryID) int {
	return cmp.Or(cmp.Compare(id.ms, other.ms), cmp.Compare(id.seq, other.seq))
}

// parseEntryID reads "ms-seq". "" is the zero id, and "ms" means "ms-0", as it does to Redis.
func parseEntryID(text string) (id entryID, err error) {
	if text == "" {
		return id, nil
	}
	ms, seq, both := strings.Cut(text, "-")
	if id.ms, err = strconv.ParseUint(ms, 10, 64); err == nil && both {
		id.seq, err = strconv.ParseUint(seq, 10, 64)
	}
	if err != nil {
		return id, fmt.Errorf("%q is not the id of a stream's entry, such as 1526919030474-55", text)
	}
	return id, nil
}

// streamPlace is where the reading of a stream is: behind the entry with that id, of which
// ordinal is the number in the stream's life. So what lies behind it can be counted
// without looking: the entries that were ever added, less ordinal. Redis counts them
// since version 7; without that ordinal is 0, for unknown.
type streamPlace struct {
	id      entryID
	ordinal int64
}

// String is the position as the database keeps it: a format, which outlives an upgrade.
func (p streamPlace) String() string { return fmt.Sprintf("%s %d", p.id, p.ordinal) }

// known says whether ordinal is a number. Before the first entry there are 0.
func (p streamPlace) known() bool { return p.ordinal > 0 || p.id == entryID{} }

func parsePlace(text string) (p streamPlace, err error) {
	id, ordinal, _ := strings.Cut(text, " ")
	if p.id, err = parseEntryID(id); err != nil {
		return p, err
	}
	if p.ordinal, err = strconv.ParseInt(ordinal, 10, 64); err != nil || p.ordinal < 0 || id == "" {
		return p, fmt.Errorf("%q is not a position in a stream, such as \"1526919030474-55 1234\"", text)
	}
	return p, nil
}
