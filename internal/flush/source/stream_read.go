package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/source/object"
	"baton/internal/flush/source/paging"
	"baton/internal/flush/source/place"
	"baton/internal/redisconn"
)

// Read yields the entries up to the last entry that Stage has seen, page by page. Each page moves the position from the end of the previous
// page to its own end.
func (s *Stream) Read(ctx context.Context, st flush.Stage, yield func(flush.Page) error) error {
	s.mu.Lock()
	r := s.staged
	s.mu.Unlock()
	if r.id != st.ID {
		return fmt.Errorf("read stream %q: batch %s is not the one that was staged last", s.Live, st.ID)
	}
	if r.behind == (place.ID{}) {
		return yield(flush.Page{Part: -1, Lane: flush.InOrder, Move: &flush.Move{From: r.position, To: r.from.String()}})
	}
	c, err := s.Store.Conn(ctx, s.Live)
	if err != nil {
		return err
	}
	defer c.Close() // returns it to the pool
	entries := newEntries(s.inputs, s.bytes)
	entries.lastSize = r.anchorSize
	for position, more := r.position, true; more; {
		var records []row.Record
		if records, more, err = s.page(ctx, c, &r, entries); err != nil {
			return err
		}
		if len(records) == 0 {
			return nil
		}
		move := flush.Move{From: position, To: r.from.String()}
		if err := yield(flush.Page{Part: -1, Lane: flush.InOrder, Records: records, Move: &move}); err != nil {
			return err
		}
		position = move.To
	}
	return nil
}

// page reads entries until the page is full, and moves the place in r to the end of the page. If an entry is too long for this page, the
// next page gets it.
func (s *Stream) page(ctx context.Context, c redisconn.Conn, r *streamStage, entries *entries) (page []row.Record, more bool, err error) {
	for left := s.bytes; len(page) < s.pageRows && left > 0; {
		if len(entries.waits) == 0 {
			if whole, err := s.ask(ctx, c, r, entries, s.pageRows-len(page)); err != nil || !whole {
				return page, false, err
			}
		}
		n, bytes := paging.Fitting(entries.waits, left, len(page) == 0)
		last := entries.last
		if left -= bytes; n < len(entries.waits) {
			left = 0
			if n == 0 {
				break
			}
			if last, err = place.ParseID(entries.waits[n-1].Key); err != nil {
				return nil, false, err
			}
		}
		if len(page)+n > cap(page) { // the capacity grows in a few steps, and not beyond the size of a page
			page = slices.Grow(page, max(n, min(3*len(page), s.pageRows-len(page))))
		}
		page = append(page, entries.waits[:n]...)
		if entries.waits = entries.waits[n:]; len(entries.waits) == 0 {
			entries.waits = nil // an empty slice would keep its records in memory
		}
		r.advance(last, n)
		if len(entries.waits) == 0 && entries.ended {
			r.end()
			return page, false, nil
		}
	}
	return page, true, nil
}

// ask reads some entries after the place in r. The argument most limits their number. The result whole is false if these entries do not
// follow directly after the entries that were read before.
func (s *Stream) ask(ctx context.Context, c redisconn.Conn, r *streamStage, entries *entries, most int) (whole bool, err error) {
	want, done := min(entries.pace.Depth(), most), false
	if r.anchor && entries.lastSize > largeAnchor {
		done, err = s.behindLarge(ctx, c, r, entries, want)
	}
	if !done && err == nil {
		if r.anchor {
			want++
		}
		entries.waits, err = entries.read(ctx, c, nil, s.Live, r.from.ID, r.until.ID.String(), want)
	}
	if err != nil {
		return false, s.Fail("read", err)
	}
	entries.ended = entries.found < want || entries.last == r.until.ID
	return s.joins(ctx, r, entries.first)
}

// largeAnchor is the minimum length in bytes of a large anchor. An anchor is the last entry that was read. The next entries are read
// together with the anchor, unless the anchor is large.
const largeAnchor = 64 << 10

// behindLarge reads some entries after a large anchor (the last entry that was read), without the anchor. Then it checks that the anchor
// still exists. Because trimming begins at the oldest entry, no entry after an existing anchor was trimmed. The result done is false if the
// stream is being moved to another node of a Cluster.
func (s *Stream) behindLarge(
	ctx context.Context, c redisconn.Conn, r *streamStage, entries *entries, want int,
) (done bool, err error) {
	at := r.from.ID.String()
	q := questionOf(redisconn.Cmd("XRANGE", s.Live, r.from.ID.Next().String(), r.until.ID.String(), "COUNT", want),
		redisconn.Cmd("XRANGE", s.Live, at, at, "COUNT", 1))
	q.Nested, q.Brief = true, func(command int) bool { return command == 1 }
	q.Read = func(a *redisconn.Answers) error {
		for _, reply := range a.Replies {
			switch {
			case redisconn.IsElsewhere(reply.Refusal):
				return nil
			case reply.Refusal != "":
				return reply.Refusal
			}
		}
		done = true
		if entries.waits, err = entries.decode(nil, a, place.ID{}); err != nil {
			return err
		}
		if anchor, _ := a.Briefs[0].([]any); len(anchor) == 1 {
			entries.first, _, _ = place.EntryOf(anchor[0])
		}
		return nil
	}
	err = c.Ask(ctx, q)
	return done, err
}

// advance moves the place to the last entry that was read, which becomes the anchor of the next reading. The argument by is the number of
// entries that were read.
func (r *streamStage) advance(last place.ID, by int) {
	if by == 0 {
		return
	}
	if r.from.Known() && r.until.Ordinal > 0 {
		r.from.Ordinal += int64(by)
	} else {
		r.from.Ordinal = 0
	}
	r.from.ID, r.anchor = last, true
}

// end sets the ordinal number of the place to that of the last entry that Stage has seen. The number of that entry is certain, even if
// entries before it were deleted.
func (r *streamStage) end() { r.from.Ordinal = r.until.Ordinal }

// joins reports whether the entries from first on follow directly after the last entry that was read. If they do not follow directly, the
// stream was trimmed meanwhile, or entries were deleted. If unread entries were lost and on_gap is "stop", joins returns the error of
// gapError. If joins returns false without an error, the stage ends here, and the next stage decides how to continue.
func (s *Stream) joins(ctx context.Context, r *streamStage, first place.ID) (bool, error) {
	if r.anchor && first == r.from.ID || !r.anchor && first == r.behind {
		return true, nil
	}
	l, err := s.look(ctx, r.from.ID.String(), "")
	if err != nil {
		return false, err
	}
	missing, _ := l.Gap(r.from)
	if missing != "" && !s.carryOn {
		return false, s.gapError(r.from, missing)
	}
	return false, nil
}

// entries decodes the reply of XRANGE.
type entries struct {
	inputs      []string
	pace        redisconn.Pace
	first, last place.ID     // the ids in the last reply; zero if the reply had no entries
	found       int          // the number of entries in the last reply
	lastSize    int          // the bytes of the last entry, or of the anchor; 0: unknown
	waits       []row.Record // entries that are not in a page yet
	ended       bool         // no more entries follow
}

// mostEntries limits the number of entries that one command reads, because the lengths of the entries are not known before they are read.
const mostEntries = 128

func newEntries(inputs []string, page int) *entries {
	return &entries{inputs: inputs, pace: redisconn.NewPace(mostEntries, paging.Reply(page))}
}

// read reads at most count entries, beginning at the id in the argument from. It adds a record for each of them, except for an entry with
// exactly that id.
func (d *entries) read(
	ctx context.Context, c redisconn.Conn, records []row.Record, key string, from place.ID, until string, count int,
) ([]row.Record, error) {
	err := askTexts(ctx, c, true, func(a *redisconn.Answers) (err error) {
		records, err = d.decode(records, a, from)
		return err
	}, redisconn.Cmd("XRANGE", key, from.String(), until, "COUNT", count))
	return records, err
}

var errNoEntry = errors.New("the server's answer is not a list of entries")

// decode adds a record for each entry except an entry with the id skip, which can only be the first entry. The texts of a reply share one
// allocation.
func (d *entries) decode(records []row.Record, a *redisconn.Answers, skip place.ID) ([]row.Record, error) {
	d.first, d.last, d.found = place.ID{}, place.ID{}, a.Replies[0].Elements
	texts := textReader{texts: a.Take(), sizes: a.Sizes}
	n := len(d.inputs)
	raws := make([]row.Raw, d.found*n)
	records = slices.Grow(records, d.found)
	var last string
	reply := redisconn.Paced{Records: d.found, Bytes: len(a.All)}
	for i := range d.found {
		if fields, ok := texts.array(); !ok || fields != 2 {
			return records, errNoEntry
		}
		id, ok := texts.next()
		fields, ok2 := texts.array()
		if !ok || !ok2 || fields%2 != 0 {
			return records, errNoEntry
		}
		if last = id; i == 0 {
			var err error
			if d.first, err = place.ParseID(id); err != nil {
				return records, err
			}
			if d.first == skip {
				texts.skip(fields)
				if 2*len(texts.texts) < len(a.All) { // otherwise the texts of the other entries would keep a large anchor in memory
					texts.texts = strings.Clone(texts.texts)
				}
				continue
			}
		}
		record := row.Record{Key: id, Inputs: raws[:n:n]}
		raws = raws[n:]
		before := len(texts.texts)
		var err error
		if record.Err, err = d.fields(&record, &texts, fields/2); err != nil {
			return records, err
		}
		d.lastSize = before - len(texts.texts)
		reply.Largest = max(reply.Largest, d.lastSize)
		records = append(records, record)
	}
	d.pace.Learn(reply)
	var err error
	d.last, err = place.ParseID(last)
	return records, err
}

// fields reads an entry's fields, and keeps those that are inputs. An entry that has an input twice is ambiguous and becomes a dead letter.
func (d *entries) fields(record *row.Record, texts *textReader, fields int) (misfortune, err error) {
	for i, input := range d.inputs {
		if input == row.InputID {
			record.Inputs[i] = row.Raw{Text: record.Key, OK: true}
		}
	}
	for next := 0; fields > 0; fields, next = fields-1, next+1 {
		name, named := texts.next()
		value, valued := texts.next()
		if !named || !valued {
			return nil, errNoEntry
		}
		var found bool
		if next, found = object.Find(d.inputs, name, next); !found || d.inputs[next] == row.InputID {
			continue
		}
		if record.Inputs[next].OK {
			misfortune = errors.Join(misfortune, fmt.Errorf("field %q occurs more than once, also with the value %q", name, value))
			continue
		}
		record.Inputs[next] = row.Raw{Text: value, OK: true}
	}
	return misfortune, nil
}

// textReader reads texts one by one.
type textReader struct {
	texts string
	sizes []int
}

// next returns the next text. The result ok is false if no text is left, or if the reply has another type there.
func (t *textReader) next() (text string, ok bool) {
	if len(t.sizes) == 0 || t.sizes[0] < 0 {
		return "", false
	}
	n := t.sizes[0]
	text, t.texts, t.sizes = t.texts[:n], t.texts[n:], t.sizes[1:]
	return text, true
}

// array returns the number of elements of the array that begins at this place of the reply.
func (t *textReader) array() (elements int, ok bool) {
	if len(t.sizes) == 0 || redisconn.Nested(t.sizes[0]) < 0 {
		return 0, false
	}
	elements, t.sizes = redisconn.Nested(t.sizes[0]), t.sizes[1:]
	return elements, true
}

// skip skips the next n texts.
func (t *textReader) skip(n int) {
	for range n {
		_, _ = t.next()
	}
}
