package place

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
)

// Look is the state of a stream relative to a place, at one moment.
type Look struct {
	Exists     bool
	Length     int64
	Last       ID    // the last one ever generated, deleted or not
	Added      int64 // entries ever added; -1 for unknown
	MaxDeleted ID    // the highest that was deleted, other than by trimming
	First      ID    // zero if there is no entry
	Anchor     bool  // the entry of the place is there
	Behind     ID    // the first entry behind the place; zero if there is none
	Noted      string
	// FirstSize and AnchorSize are the bytes of the first entry, and of that at the place; 0 where it is unknown.
	FirstSize, AnchorSize int
}

// LookOf reads the noted position, XINFO STREAM, and the entries from at on.
func LookOf(replies []any, at string) (l Look, ok bool) {
	if len(replies) != 3 {
		return l, false
	}
	l.Added = -1
	l.Noted, _ = replies[0].(string)
	if refusal, ok := replies[1].(redis.Error); ok {
		return l, strings.HasSuffix(string(refusal), "no such key")
	}
	told, _ := replies[1].([]any)
	info := map[any]any{}
	for i := 0; i+1 < len(told); i += 2 {
		info[told[i]] = told[i+1]
	}
	l.Exists = true
	if n, ok := info["entries-added"].(int64); ok {
		l.Added = n
	}
	var whole [5]bool
	l.Length, whole[0] = info["length"].(int64)
	l.Last, whole[1] = idOf(info["last-generated-id"])
	if l.MaxDeleted, whole[2] = idOf(info["max-deleted-entry-id"]); l.Added < 0 { // of a Redis before 7.0
		whole[2] = true
	}
	var first any
	if first, whole[3] = info["first-entry"]; first != nil {
		l.First, l.FirstSize, whole[3] = EntryOf(first)
	}
	var entries []any
	entries, whole[4] = replies[2].([]any)
	for _, entry := range entries {
		id, size, ok := EntryOf(entry)
		whole[4] = whole[4] && ok
		if id.String() == at {
			l.Anchor, l.AnchorSize = true, size
			continue
		}
		l.Behind = id
		break
	}
	return l, !slices.Contains(whole[:], false)
}

// EntryOf reads an entry of a brief reply: its id, and how long its fields are.
func EntryOf(reply any) (id ID, size int, ok bool) {
	parts, _ := reply.([]any)
	if len(parts) != 2 {
		return id, 0, false
	}
	id, ok = idOf(parts[0])
	fields, _ := parts[1].([]any)
	for _, text := range fields {
		switch text := text.(type) {
		case string:
			size += len(text)
		case redisconn.Left:
			size += int(text)
		}
	}
	return id, size, ok
}

func idOf(reply any) (id ID, ok bool) {
	text, ok := reply.(string)
	if !ok || text == "" {
		return id, false
	}
	id, err := ParseID(text)
	return id, err == nil
}

// Number gives the place the number by which the entries that are still behind it can
// be counted, if the look tells: entries that were deleted count as before it.
func (l Look) Number(at Place) Place {
	switch {
	case l.Added < 0:
		at.Ordinal = 0
	case l.Behind == ID{}:
		at.Ordinal = l.Added
	case l.First.Compare(at.ID) > 0:
		at.Ordinal = l.Added - l.Length
	case l.First == at.ID:
		at.Ordinal = l.Added - l.Length + 1
	}
	return at
}

// End is the place behind all entries.
func (l Look) End() Place { return Place{ID: l.Last, Ordinal: max(l.Added, 0)} }

// Pending counts the entries behind a place; where Redis does not count them, and
// where its count does not fit, it is as many as there can be.
func (l Look) Pending(at Place) int64 {
	if l.Behind == (ID{}) {
		return 0
	}
	if at = l.Number(at); at.Known() && l.Added > at.Ordinal {
		return min(l.Added-at.Ordinal, l.Length)
	}
	return l.Length
}

// Gap describes how entries between a place and the present stream are missing: "" if they are not.
// Then next is where to go on behind it.
//
// The entry at the place is its anchor. Trimming begins at the oldest entry, so where
// the anchor is, nothing behind it was trimmed. Where it is not, the number of entries
// behind it that were ever added tells whether all of them are there.
func (l Look) Gap(at Place) (missing string, next Place) {
	known := at.Known() && l.Added >= 0
	switch {
	case !l.Exists && at.ID == ID{}, l.Exists && l.Anchor, l.Exists && l.Last == at.ID && at.ID != ID{}:
		return "", at
	case !l.Exists:
		return "the stream is gone: it was deleted, or Redis has lost its data. Unread entries behind the position are lost",
			Place{}
	case l.Last.Compare(at.ID) < 0:
		return fmt.Sprintf("the last id of the stream is %s, before the position: the stream was made again, or Redis has lost data. "+
			"Its present entries may have been read before, or not", l.Last), l.End()
	case l.First != ID{} && l.First.Compare(at.ID) < 0: // not trimmed, so somebody has deleted the anchor, or it was never there
		return l.hole(at), at
	case known && l.Added-at.Ordinal == l.Length:
		return "", at
	case known && l.Added-at.Ordinal > l.Length:
		return fmt.Sprintf("%d entries behind it were trimmed or deleted before they were read, between %s and %s",
			l.Added-at.Ordinal-l.Length, at.ID, l.beginning()), at
	case known:
		return fmt.Sprintf("the stream has had %d entries in all, fewer than the %d that were read and the %d that are in it: it was "+
			"made anew, or Redis has lost data", l.Added, at.Ordinal, l.Length), at
	case at.ID == ID{}:
		return "", at
	}
	return fmt.Sprintf("entries behind it may have been trimmed or deleted before they were read, between %s and %s; this Redis does "+
		"not count them (7.0 and later do)", at.ID, l.beginning()), at
}

// hole is Gap where there are entries on both sides of a place that has lost its anchor.
func (l Look) hole(at Place) string {
	switch c := l.MaxDeleted.Compare(at.ID); {
	case c == 0:
		return ""
	case c > 0:
		return fmt.Sprintf("it was deleted, and so were other entries up to %s, and some may not have been read", l.MaxDeleted)
	case l.Added < 0:
		return "entries were deleted, or Redis has lost data; this Redis does not tell which (7.0 and later do)"
	}
	return "it was never deleted, so Redis has lost data; entries added since may have ids before it"
}

func (l Look) beginning() string {
	if l.First == (ID{}) {
		return "now: the stream is empty"
	}
	return l.First.String()
}
