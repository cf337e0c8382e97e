// Package place describes how far a stream was read, and whether later entries were lost before they were read. The package sends no
// commands.
//
//	ID     the id of an entry
//	Place  the position of a job: the id of the last entry that was read, and the number of entries added up to it
//	Look   the state of the stream at one moment, as the replies of Redis describe it
//	Gap    the method of Look that decides whether entries after a place were lost
//
// The database stores a Place as text. The entry at a place is its anchor, and baton does not trim the anchor. Trimming begins at the
// oldest entry, so an existing anchor proves that no unread entry was trimmed.
//
// What fails, and what then:
//
//   - The anchor was trimmed or deleted: Gap compares the number of entries that were added after the place with the number of entries that
//     exist. If they differ, it describes the lost entries.
//   - The stream is missing, or its last id is before the place: Gap says that the stream was deleted or created again, or that Redis has
//     lost data.
//   - Redis is older than version 7 and does not count added entries: if the anchor is missing, Gap says that entries may have been lost.
//   - An unread entry was deleted by XDEL while the anchor exists: Gap does not report it. Such an entry is never flushed.
//
// The source decides by the setting on_gap whether a job stops at a gap or continues after it.
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

// Compare returns a negative number if id comes before other, and 0 if both are equal.
func (id ID) Compare(other ID) int {
	return cmp.Or(cmp.Compare(id.ms, other.ms), cmp.Compare(id.seq, other.seq))
}

// Next returns the id directly after id.
func (id ID) Next() ID {
	if id.seq++; id.seq == 0 {
		id.ms++
	}
	return id
}

// ParseID parses "ms-seq". "" is the zero id, and "ms" means "ms-0", as in Redis.
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

// Place is the place up to which a stream was read: it lies after the entry with the id ID. Ordinal is the number of entries that were
// added to the stream up to this entry. So the number of entries after the place is the number of all entries ever added minus Ordinal.
// Redis counts added entries since version 7. Without that count Ordinal is 0, which means unknown.
type Place struct {
	ID      ID
	Ordinal int64
}

// String returns the place in the form that the database stores. This format must survive upgrades.
func (p Place) String() string { return fmt.Sprintf("%s %d", p.ID, p.Ordinal) }

// Known reports whether Ordinal is known. For the place before the first entry, Ordinal is 0 and known.
func (p Place) Known() bool { return p.Ordinal > 0 || p.ID == ID{} }

// Parse parses the text that String returns.
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
