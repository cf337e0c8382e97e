// Package place is where the reading of a stream is, and tells whether entries behind it have gone unread.
package place

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// ID is the id of a stream's entry. The zero id is before all entries.
type ID struct{ ms, seq uint64 }

func (id ID) String() string { return fmt.Sprintf("%d-%d", id.ms, id.seq) }

// Compare is less than 0 where id is before the other one, and 0 where both are the same.
func (id ID) Compare(other ID) int {
	return cmp.Or(cmp.Compare(id.ms, other.ms), cmp.Compare(id.seq, other.seq))
}

// Next is the id behind it.
func (id ID) Next() ID {
	if id.seq++; id.seq == 0 {
		id.ms++
	}
	return id
}

// ParseID reads "ms-seq". "" is the zero id, and "ms" means "ms-0", as it does to Redis.
func ParseID(text string) (id ID, err error) {
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

// Place is where the reading of a stream is: behind the entry with that id. Ordinal is
// that entry's number in the stream's life. So what lies behind it can be counted
// without looking: the entries that were ever added, less ordinal. Redis counts them
// since version 7; without that Ordinal is 0, for unknown.
type Place struct {
	ID      ID
	Ordinal int64
}

// String is the position as the database keeps it: a format, which outlives an upgrade.
func (p Place) String() string { return fmt.Sprintf("%s %d", p.ID, p.Ordinal) }

// Known says whether Ordinal is a number. Before the first entry there are 0.
func (p Place) Known() bool { return p.Ordinal > 0 || p.ID == ID{} }

// Parse reads what String has written.
func Parse(text string) (p Place, err error) {
	id, ordinal, _ := strings.Cut(text, " ")
	if p.ID, err = ParseID(id); err != nil {
		return p, err
	}
	if p.Ordinal, err = strconv.ParseInt(ordinal, 10, 64); err != nil || p.Ordinal < 0 || id == "" {
		return p, fmt.Errorf("%q is not a position in a stream, such as \"1526919030474-55 1234\"", text)
	}
	return p, nil
}
