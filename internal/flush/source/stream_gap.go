package source

import (
	"context"
	"fmt"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
)

// look is the state of a stream relative to a place, at one moment.
type look struct {
	exists     bool
	length     int64
	last       entryID // the last one ever generated, deleted or not
	added      int64   // entries ever added; -1 for unknown
	maxDeleted entryID // the highest that was deleted, other than by trimming
	first      entryID // zero if there is no entry
	anchor     bool    // the entry of the place is there
	behind     entryID // the first entry behind the place; zero if there is none
	noted      string
}

var lookScript = loadScript("stream_look", 2)

// look looks at the stream from at, or from the noted position; note is noted if nothing is.
func (s *Stream) look(ctx context.Context, at, note string) (l look, err error) {
	reply, err := redis.Values(s.Script(ctx, "look at", lookScript, s.Live, s.positions(), s.Job, at, note))
	if err != nil {
		return l, err
	}
	var kind, last, maxDeleted, first, anchor, behind string
	if _, err := redis.Scan(reply, &kind, &l.length, &last, &l.added, &maxDeleted, &first, &anchor, &behind, &l.noted); err != nil {
		return l, s.Fail("look at", err)
	}
	if kind != "stream" && kind != "none" {
		return l, s.WrongType([]any{[]byte(s.Live), []byte(kind)})
	}
	l.exists, l.anchor = kind == "stream", anchor != ""
	for _, id := range []struct {
		text string
		into *entryID
	}{{last, &l.last}, {maxDeleted, &l.maxDeleted}, {first, &l.first}, {behind, &l.behind}} {
		if *id.into, err = parseEntryID(id.text); err != nil {
			return l, s.Fail("look at", err)
		}
	}
	return l, nil
}

// number gives the place the number by which what is behind it, and still there, can
// be counted, if the look tells: entries that were deleted count as before it.
func (l look) number(at streamPlace) streamPlace {
	switch {
	case l.added < 0:
		at.ordinal = 0
	case l.behind == entryID{}:
		at.ordinal = l.added
	case l.first.compare(at.id) > 0:
		at.ordinal = l.added - l.length
	case l.first == at.id:
		at.ordinal = l.added - l.length + 1
	}
	return at
}

// pending counts the entries behind a place; where Redis does not count them, and
// where its count does not fit, it is as many as there can be.
func (l look) pending(at streamPlace) int64 {
	if l.behind == (entryID{}) {
		return 0
	}
	if at = l.number(at); at.known() && l.added > at.ordinal {
		return min(l.added-at.ordinal, l.length)
	}
	return l.length
}

// gap says what is missing between a place and what is in the stream: "" for nothing.
// Then next is where to go on behind it.
//
// The entry at the place is its anchor. Trimming begins at the oldest entry, so where
// the anchor is, nothing behind it was trimmed. Where it is not, the number of entries
// behind it that were ever added tells whether all of them are there.
func (l look) gap(at streamPlace) (missing string, next streamPlace) {
	known := at.known() && l.added >= 0
	switch {
	case !l.exists && at.id == entryID{}, l.exists && l.anchor, l.exists && l.last == at.id && at.id != entryID{}:
		return "", at
	case !l.exists:
		return "the stream is gone: it was deleted, or Redis has lost its data. What was added behind the position and not read is lost",
			streamPlace{}
	case l.last.compare(at.id) < 0:
		return fmt.Sprintf("the last id of the stream is %s, before the position: the stream was made anew, or Redis has lost data. "+
			"What is in it now may have been read before, or not", l.last), streamPlace{l.last, max(l.added, 0)}
	case l.first != entryID{} && l.first.compare(at.id) < 0: // not trimmed, so somebody has deleted the anchor, or it was never there
		return l.hole(at), at
	case known && l.added-at.ordinal == l.length:
		return "", at
	case known && l.added-at.ordinal > l.length:
		return fmt.Sprintf("%d entries behind it were trimmed or deleted before they were read, between %s and %s",
			l.added-at.ordinal-l.length, at.id, l.beginning()), at
	case known:
		return fmt.Sprintf("the stream has had %d entries in all, fewer than the %d that were read and the %d that are in it: it was "+
			"made anew, or Redis has lost data", l.added, at.ordinal, l.length), at
	case at.id == entryID{}:
		return "", at
	}
	return fmt.Sprintf("entries behind it may have been trimmed or deleted before they were read, between %s and %s; this Redis does "+
		"not count them (7.0 and later do)", at.id, l.beginning()), at
}

// hole is gap where there are entries on both sides of a place that has lost its anchor.
func (l look) hole(at streamPlace) string {
	switch c := l.maxDeleted.compare(at.id); {
	case c == 0:
		return ""
	case c > 0:
		return fmt.Sprintf("it was deleted, and so were other entries up to %s, of which some may not have been read", l.maxDeleted)
	case l.added < 0:
		return "entries were deleted, or Redis has lost data; this Redis does not tell which (7.0 and later do)"
	}
	return "it was never deleted, so Redis has lost data; what was added since may have ids before it"
}

func (l look) beginning() string {
	if l.first == (entryID{}) {
		return "now: the stream is empty"
	}
	return l.first.String()
}

// gapError says of a gap what an operator has to decide.
func (s *Stream) gapError(at streamPlace, missing string) error {
	return fmt.Errorf("%w: stream %q has no entry %s any more, which is the position of job %q: %s. "+
		"To go on behind the gap, set `on_gap: continue` for one run; to begin anew at `start`, delete the job's row for %q from "+
		"baton_position",
		flush.ErrGap, s.Live, at.id, s.Job, missing, s.Live)
}
