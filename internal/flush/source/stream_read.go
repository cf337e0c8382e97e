package source

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

// Read yields the entries up to the last one that Stage has seen, page by page. Each
// page moves the position from the end of the page before.
func (s *Stream) Read(ctx context.Context, st flush.Stage, yield func(flush.Page) error) error {
	s.mu.Lock()
	r := s.staged
	s.mu.Unlock()
	if r.id != st.ID {
		return fmt.Errorf("read stream %q: batch %s is not the one that was staged last", s.Live, st.ID)
	}
	if r.behind == (entryID{}) {
		return yield(flush.Page{Part: -1, Move: &flush.Move{From: r.position, To: r.from.String()}})
	}
	c, err := s.Store.Conn(ctx, s.Live)
	if err != nil {
		return err
	}
	defer c.Close() // it goes back to the pool
	entries := newEntries(s.inputs, s.budget)
	for position, more := r.position, true; more; {
		var records []row.Record
		if records, more, err = s.page(ctx, c, &r, entries); err != nil {
			return err
		}
		if len(records) == 0 {
			return nil
		}
		move := flush.Move{From: position, To: r.from.String()}
		if err := yield(flush.Page{Part: -1, Records: records, Move: &move}); err != nil {
			return err
		}
		position = move.To
	}
	return nil
}

// page reads until the page is full, and moves r's place to its end.
func (s *Stream) page(ctx context.Context, c redis.Conn, r *streamStage, entries *entries) (records []row.Record, more bool, err error) {
	for size := 0; len(records) == 0 || len(records) < s.pageRows && size < entries.pace.page; {
		want := min(entries.pace.depth, s.pageRows-len(records))
		if r.anchor {
			want++
		}
		reply, err := redis.Values(redis.DoContext(c, ctx, "XRANGE", s.Live, r.from.id.String(), r.until.id.String(), "COUNT", want))
		if err != nil {
			return nil, false, s.Fail("read", err)
		}
		read := len(records)
		if records, err = entries.decode(records, reply, r.from.id); err != nil {
			return nil, false, s.Fail("read", err)
		}
		if whole, err := s.joins(ctx, r, entries.first); err != nil || !whole {
			return records[:read], false, err
		}
		size += entries.size
		r.advance(entries.last, len(records)-read)
		if len(reply) < want || entries.last == r.until.id {
			r.end()
			return records, false, nil
		}
	}
	return records, true, nil
}

// advance moves the place to an entry that was read, which is the anchor of what is
// read next.
func (r *streamStage) advance(last entryID, by int) {
	if by == 0 {
		return
	}
	if r.from.known() && r.until.ordinal > 0 {
		r.from.ordinal += int64(by)
	} else {
		r.from.ordinal = 0
	}
	r.from.id, r.anchor = last, true
}

// end is at the last entry that Stage has seen. Its number is known, however many of
// those before it were deleted.
func (r *streamStage) end() { r.from.ordinal = r.until.ordinal }

// joins says whether what was read, beginning with first, joins what was read before.
// If not, the stream was trimmed meanwhile, or entries were deleted. Unless that is a
// gap to stop at, the stage ends here: the next one looks anew, and tells of a gap.
func (s *Stream) joins(ctx context.Context, r *streamStage, first entryID) (bool, error) {
	if r.anchor && first == r.from.id || !r.anchor && first == r.behind {
		return true, nil
	}
	l, err := s.look(ctx, r.from.id.String(), "")
	if err != nil {
		return false, err
	}
	missing, _ := l.gap(r.from)
	if missing != "" && !s.carryOn {
		return false, s.gapError(r.from, missing)
	}
	return false, nil
}

// entries decodes what XRANGE replies.
type entries struct {
	inputs      []string
	pace        pace
	first, last entryID // of the reply that was decoded last; zero if it had none
	size        int     // its bytes

	text  []byte // of all that is wanted of a reply
	spans []span
}

// span is where a raw text is.
type span struct{ raw, from, to int }

func newEntries(inputs []string, budget int) *entries {
	return &entries{inputs: inputs, pace: newPace(budget)}
}

var errNoEntry = errors.New("the server's answer is not a list of entries")

// decode adds a record for each entry but that with the id skip, which may be the
// first. The texts of a reply share one allocation.
func (d *entries) decode(records []row.Record, reply []any, skip entryID) ([]row.Record, error) {
	d.first, d.last, d.size = entryID{}, entryID{}, 0
	d.text, d.spans = d.text[:0], d.spans[:0]
	n, begin := len(d.inputs), len(records)
	raws := make([]row.Raw, len(reply)*n)
	keys := make([]span, 0, len(reply))
	for i, e := range reply {
		id, fields, err := entryOf(e)
		if err != nil {
			return records, err
		}
		if d.last, err = parseEntryID(string(id)); err != nil {
			return records, err
		}
		if i == 0 {
			d.first = d.last
			if d.first == skip {
				continue
			}
		}
		k := len(keys)
		keys = append(keys, d.keep(0, id))
		record := row.Record{Inputs: raws[k*n : (k+1)*n : (k+1)*n]}
		if record.Err, err = d.fields(record.Inputs, k*n, id, fields); err != nil {
			return records, err
		}
		records = append(records, record)
	}
	all := string(d.text)
	for _, s := range d.spans {
		raws[s.raw].Text = all[s.from:s.to]
	}
	for i, s := range keys {
		records[begin+i].Key = all[s.from:s.to]
	}
	d.pace.learn(max(1, len(reply)), d.size)
	return records, nil
}

// keep copies a text to where those of the reply are.
func (d *entries) keep(raw int, text []byte) span {
	from := len(d.text)
	d.text = append(d.text, text...)
	return span{raw, from, len(d.text)}
}

// fields reads the wanted fields of an entry. A stream may have a field twice; which
// of them would count nobody can say: that is the entry's own misfortune.
func (d *entries) fields(into []row.Raw, base int, id []byte, fields []any) (misfortune, err error) {
	for i, input := range d.inputs {
		if input == row.InputID {
			into[i].OK = true
			d.spans = append(d.spans, d.keep(base+i, id))
		}
	}
	d.size += len(id)
	for i, next := 0, 0; i+1 < len(fields); i, next = i+2, next+1 {
		name, named := fields[i].([]byte)
		value, valued := fields[i+1].([]byte)
		if !named || !valued {
			return nil, errNoEntry
		}
		d.size += len(name) + len(value)
		var found bool
		if next, found = indexOf(d.inputs, name, next); !found || d.inputs[next] == row.InputID {
			continue
		}
		if into[next].OK {
			misfortune = errors.Join(misfortune, fmt.Errorf("field %q is there more than once, also with %q", name, value))
			continue
		}
		into[next].OK = true
		d.spans = append(d.spans, d.keep(base+next, value))
	}
	return misfortune, nil
}

// entryOf takes one entry of a reply apart.
func entryOf(e any) (id []byte, fields []any, err error) {
	parts, ok := e.([]any)
	if !ok || len(parts) != 2 {
		return nil, nil, errNoEntry
	}
	id, ok = parts[0].([]byte)
	if !ok {
		return nil, nil, errNoEntry
	}
	if fields, ok = parts[1].([]any); !ok {
		return nil, nil, errNoEntry
	}
	return id, fields, nil
}
