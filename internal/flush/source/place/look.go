package place

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
)

// Look describes a stream, and the entries at and after a place in the stream, at one moment.
type Look struct {
	Exists     bool
	Length     int64
	Last       ID    // the last id ever generated, even if its entry was deleted
	Added      int64 // the number of entries ever added; -1 if unknown
	MaxDeleted ID    // the highest id that was deleted, other than by trimming
	First      ID    // the first entry; zero if the stream is empty
	Anchor     bool  // the entry at the place exists
	Behind     ID    // the first entry after the place; zero if no entry follows
	Noted      string
	// FirstSize and AnchorSize are the bytes of the first entry and of the entry at the place. 0 means that the size is unknown.
	FirstSize, AnchorSize int
}

// LookOf parses three replies: the recorded position, the reply of XINFO STREAM, and a list of entries. The argument at is the id of
// the first requested entry.
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
	if l.MaxDeleted, whole[2] = idOf(info["max-deleted-entry-id"]); l.Added < 0 { // a Redis before 7.0 does not report it
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

// EntryOf parses an entry of a brief reply: its id, and the size of its fields.
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
		case redisconn.OmittedSize:
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

// Number sets the ordinal of a place, if the look shows the ordinal. The ordinal is used to count the entries after the place, so deleted
// entries count as entries before the place.
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

// End returns the place after all entries.
func (l Look) End() Place { return Place{ID: l.Last, Ordinal: max(l.Added, 0)} }

// Pending counts the entries after a place. If Redis does not count entries, or its count contradicts the place, Pending returns the
// maximum that is possible.
func (l Look) Pending(at Place) int64 {
	if l.Behind == (ID{}) {
		return 0
	}
	if at = l.Number(at); at.Known() && l.Added > at.Ordinal {
		return min(l.Added-at.Ordinal, l.Length)
	}
	return l.Length
}

// Gap describes which entries between a place and the present stream are missing. It returns "" if no entry is missing. Otherwise next is
// the place after the missing entries.
//
// The entry at the place is its anchor. Trimming begins at the oldest entry. So if the anchor exists, no later entry was trimmed. If the
// anchor does not exist, the number of entries that were ever added after the place shows whether all of these entries exist.
func (l Look) Gap(at Place) (missing string, next Place) {
	known := at.Known() && l.Added >= 0
	switch {
	case !l.Exists && at.ID == ID{}, l.Exists && l.Anchor, l.Exists && l.Last == at.ID && at.ID != ID{}:
		return "", at
	case !l.Exists:
		return "the stream is gone: it was deleted, or Redis has lost its data. Unread entries after the position are lost",
			Place{}
	case l.Last.Compare(at.ID) < 0:
		return fmt.Sprintf("the last id of the stream is %s, before the position: the stream was created again, or Redis has lost data. "+
			"It is unknown whether the present entries have been read", l.Last), l.End()
	// The anchor was not trimmed, because an older entry exists; so it was deleted, or never existed.
	case l.First != ID{} && l.First.Compare(at.ID) < 0:
		return l.hole(at), at
	case known && l.Added-at.Ordinal == l.Length:
		return "", at
	case known && l.Added-at.Ordinal > l.Length:
		return fmt.Sprintf("%d entries after it were trimmed or deleted before they were read, between %s and %s",
			l.Added-at.Ordinal-l.Length, at.ID, l.beginning()), at
	case known:
		return fmt.Sprintf("only %d entries were ever added to the stream, but %d were read and %d are in it: the stream was "+
			"created again, or Redis has lost data", l.Added, at.Ordinal, l.Length), at
	case at.ID == ID{}:
		return "", at
	}
	return fmt.Sprintf("entries after it may have been trimmed or deleted before they were read, between %s and %s; this Redis does "+
		"not count such entries (Redis 7.0 and later does)", at.ID, l.beginning()), at
}

// hole works like Gap, for a place whose anchor does not exist although the stream has entries before the place.
func (l Look) hole(at Place) string {
	switch c := l.MaxDeleted.Compare(at.ID); {
	case c == 0:
		return ""
	case c > 0:
		return fmt.Sprintf("this entry and others up to %s were deleted, and some may not have been read", l.MaxDeleted)
	case l.Added < 0:
		return "entries were deleted, or Redis has lost data; this Redis does not show which of the two (Redis 7.0 and later does)"
	}
	return "this entry was never deleted, so Redis has lost data; entries that were added since then may have ids before it"
}

func (l Look) beginning() string {
	if l.First == (ID{}) {
		return "now: the stream is empty"
	}
	return l.First.String()
}
