package source

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/source/object"
	"baton/internal/flush/source/paging"
	"baton/internal/flush/source/spec"
	"baton/internal/flush/source/staging"
	"baton/internal/redisconn"
)

// ListOptions describe a live list of JSON objects that producers add to with RPUSH.
type ListOptions struct {
	Job string
	Key string // the live key, of one shard
	// Inputs are the parts of a record: names of the objects' members, and "$value", the whole text. "$value" wins over a member of that
	// name.
	Inputs []string
	// PartRows and BatchBytes bound the items of a part, and their bytes; a part is one transaction. An item that is longer is a part of
	// its own. Default 5000, and 8 MiB.
	PartRows, BatchBytes int
}

// List reads one list of JSON objects, the oldest first: a flush.Source.
//
// Inserting is not idempotent. So a stage is cut into parts, and the database's ledger remembers each part. A part holds as many items
// from the end of the last part on as PartRows and BatchBytes allowed when the stage was made: so the items alone decide the parts, for
// every reader and at every reading. Committed parts are trimmed off the stage's head, whole and in order, so a part always begins at the
// head. Items are found by their distance from the tail, where no producer adds any more. So the trimmed part of the head does not
// matter.
type List struct {
	staging.Key
	inputs []string
	bytes  int // of a part
}

// NewList checks the options; it does not connect.
func NewList(store *redisconn.Store, o ListOptions) (*List, error) {
	key, err := staging.New(store, o.Job, o.Key, "list")
	if err != nil {
		return nil, err
	}
	key.Parts = positive(o.PartRows, defaultPageRows)
	return &List{Key: key, inputs: o.Inputs, bytes: paging.Bytes(o.BatchBytes, 1)}, nil
}

var (
	listStageScript = loadScript("list_stage", 3)
	listTrimScript  = loadScript("list_trim", 2)
)

// Stage freezes pending items under newID, or finds the stage of an earlier run.
func (s *List) Stage(ctx context.Context, newID, _ string) (st flush.Stage, ok bool, err error) {
	verdict, reply, err := s.Freeze(ctx, listStageScript, s.Live, s.StageKey(), s.MetaKey(), newID, s.Parts, s.Job, s.bytes)
	if err != nil {
		return st, false, err
	}
	switch verdict {
	case "nothing":
		return st, false, nil
	case "staged":
		st, err = staging.StageOf(reply, newID)
		return st, err == nil, err
	case "wrong_type":
		return st, false, s.WrongType(reply)
	case "orphan":
		return st, false, fmt.Errorf("%w: %q has no id in %q, so it is unknown which part of it is in the database. "+
			"If all of it is, UNLINK it; if nothing is, RENAME it to a key that is flushed",
			staging.ErrBrokenStage, s.StageKey(), s.MetaKey())
	default: // changed
		var id string
		var want, found int64
		if _, err := redis.Scan(reply, &id, &want, &found); err != nil {
			return st, false, s.Fail("stage", err)
		}
		return st, false, s.changed(id, want, found)
	}
}

// changed is the error of a stage that lacks some of its items, or has too many.
func (s *List) changed(id string, want, found int64) error {
	return fmt.Errorf("%w: batch %s of %q should have %d more items in %q, and has %d: somebody else has removed or added some, or "+
		"Redis has lost them. "+
		"Restore it; or give up the rest of it with UNLINK %s %s, if need be after a RENAME of the present key",
		staging.ErrBrokenStage, id,
		s.Live, want, s.StageKey(), found, s.StageKey(), s.MetaKey())
}

// Read yields the parts of the stage that have not been taken off it, each as one page.
func (s *List) Read(ctx context.Context, st flush.Stage, yield func(flush.Page) error) error {
	c, err := s.Store.Conn(ctx, s.Live)
	if err != nil {
		return err
	}
	defer c.Close() // it goes back to the pool
	cut, err := s.cut(ctx, c, st)
	if err != nil {
		return err
	}
	items := newItems(s.inputs, s.bytes)
	var read []row.Record // not yet in a part
	for at, part := cut.taken, cut.done; at < cut.size; part++ {
		n, whole := paging.Part(read, cut.rows, cut.bytes, cut.size-at)
		for !whole {
			if read, err = s.more(ctx, c, st, cut, part, at+int64(len(read)), items, read); err != nil {
				return err
			}
			n, whole = paging.Part(read, cut.rows, cut.bytes, cut.size-at)
		}
		if err := yield(flush.Page{Part: int(part), Lane: flush.InOrder, Records: read[:n:n]}); err != nil {
			return err
		}
		at += int64(n)
		read = append(make([]row.Record, 0, len(read)), read[n:]...) // so that the garbage collector can free the delivered parts
	}
	return nil
}

// cut tells how a stage is cut into parts, and how much of it has been trimmed.
type cut struct {
	size        int64 // items at staging
	rows, bytes int64 // of a part, at most; 0 bytes: an older version of baton, without that limit
	done, taken int64 // parts and items trimmed off
}

// metaOfCut are the fields of a stage's meta with the cut.
var metaOfCut = []any{"id", "size", "done", "rows", "part_rows", "part_bytes", "taken"}

func (s *List) askCut() redisconn.Command {
	return redisconn.Cmd("HMGET", append([]any{s.MetaKey()}, metaOfCut...)...)
}

// cut reads the cut, and fails with flush.ErrStaleStage unless the stage still has its id.
func (s *List) cut(ctx context.Context, c redisconn.Conn, st flush.Stage) (cut, error) {
	ask := s.askCut()
	reply, err := redis.Values(redis.DoContext(c, ctx, ask.Name, ask.Args...))
	if err != nil {
		return cut{}, s.Fail("look up the stage of", err)
	}
	return s.cutOf(reply, st)
}

func (s *List) cutOf(reply any, st flush.Stage) (found cut, err error) {
	values, err := redis.Values(reply, nil)
	if err != nil {
		return found, s.Fail("look up the stage of", err)
	}
	var id string
	if values, err = redis.Scan(values, &id); err == nil && id != st.ID {
		return found, s.Stale(st)
	}
	var rows int64
	if err == nil {
		_, err = redis.Scan(values, &found.size, &found.done, &rows, &found.rows, &found.bytes, &found.taken)
	}
	if rows > 0 { // parts of an older version, which are all of one length
		found.rows, found.bytes, found.taken = rows, 0, rows*found.done
	}
	if err == nil && found.rows < 1 {
		err = errors.New("it does not say how many rows a part has")
	}
	return found, s.Fail("look up the stage of", err)
}

// more reads some more items, from one on, for a part. Then it reads the id: an id goes with its stage and is never used again, and parts
// are trimmed in order. So if that reading finds the id, and the part not trimmed, the items came from the intact part.
//
// The length of unread items is unknown, so one command asks for a few items only; after short items, many commands go together.
func (s *List) more(
	ctx context.Context, c redisconn.Conn, st flush.Stage, at cut, part, first int64, items *items, records []row.Record,
) ([]row.Record, error) {
	end := min(first+min(int64(items.pace.Depth()), at.rows-int64(len(records))), at.size)
	var ranges []redisconn.Command
	for from := first; from < end; from += fewItems {
		// Indexes from the tail: -1 is the last item of the stage.
		ranges = append(ranges, redisconn.Cmd("LRANGE", s.StageKey(), from-at.size, min(from+fewItems, end)-1-at.size))
	}
	look := s.askCut()
	records, looked, err := items.read(ctx, c, records, &look, ranges...)
	if err != nil {
		return nil, s.Fail("read the stage of", err)
	}
	now, err := s.cutOf(looked, st)
	if err != nil {
		return nil, err
	}
	if now.done > part { // another process has committed it: only a newer leader can
		return nil, s.Stale(st)
	}
	if int64(items.found) != end-first {
		return nil, s.changed(st.ID, end-first, int64(items.found))
	}
	return records, nil
}

// Done takes the page's part off the head of the stage, once.
func (s *List) Done(ctx context.Context, st flush.Stage, p flush.Page) error {
	verdict, err := redis.String(s.Script(ctx, "remove a flushed part from the stage of", listTrimScript, s.StageKey(), s.MetaKey(), st.ID,
		p.Part, len(p.Records)))
	if err != nil {
		return err
	}
	switch verdict {
	case "stale":
		return s.Stale(st)
	case "early":
		return fmt.Errorf("part %d of batch %s of %q is to be removed before the part that comes first", p.Part, st.ID, s.Live)
	}
	return nil
}

// Discard removes the id of an empty stage.
func (s *List) Discard(ctx context.Context, st flush.Stage) error {
	return s.DiscardWith(ctx, st, 0)
}

// fewItems are few enough for one command, however long they are: eight of a megabyte take Redis some 7 ms.
const fewItems = 8

var listSpec = Spec{
	Kind: spec.Named("list"),
	idle: staging.Beside,
	inputs: func(Options) (row.Inputs, error) {
		return row.Inputs{Names: []string{row.InputValue}, Fields: true, Guarantee: row.ByLedger}, nil
	},
	commands: func(Options, string) []string {
		return append(slices.Clone(stagingCommands), "LLEN K", "LRANGE S 0 0", "LTRIM S 0 0")
	},
	open: func(s *redisconn.Store, key string, o Options, inputs []string) (flush.Source, error) {
		return NewList(s, ListOptions{Job: o.Job, Key: key, Inputs: inputs, PartRows: o.Rows, BatchBytes: paging.Bytes(o.Bytes, o.Lanes)})
	},
}

// items reads the items of lists, a question at a time.
type items struct {
	inputs []string
	object object.Decoder
	pace   redisconn.Pace
	found  int // how many the last question found
}

func newItems(inputs []string, page int) *items {
	return &items{inputs: inputs, object: object.New(inputs), pace: redisconn.NewPace(paging.Depth, paging.Reply(page))}
}

// read adds a record for each text of the ranges. look, if it is not nil, is sent after them; looked is its reply.
func (d *items) read(
	ctx context.Context, c redisconn.Conn, records []row.Record, look *redisconn.Command, ranges ...redisconn.Command,
) (_ []row.Record, looked []any, err error) {
	if look != nil {
		ranges = append(ranges, *look)
	}
	err = askTexts(ctx, c, false, func(a *redisconn.Answers) error {
		n := len(a.Sizes)
		if look != nil {
			looked, n = lastReply(a)
		}
		records = d.decode(records, a, n)
		return nil
	}, ranges...)
	return records, looked, err
}

// decode adds a record for each of the first n texts. All of them share one allocation. The key of a record is its whole text: a dead
// letter then keeps also the members that no column uses.
func (d *items) decode(records []row.Record, a *redisconn.Answers, n int) []row.Record {
	d.found = n
	raw, all := a.All, a.Take()
	width, at, largest := len(d.inputs), 0, 0
	raws := make([]row.Raw, n*width)
	for i, size := range a.Sizes[:n] {
		size = max(0, size) // of no text
		largest = max(largest, size)
		text := all[at : at+size]
		r := row.Record{Key: text, Inputs: raws[i*width : (i+1)*width : (i+1)*width]}
		r.Err = d.object.Decode(text, raw[at:at+size], r.Inputs)
		for j, input := range d.inputs {
			if input == inputValue {
				r.Inputs[j] = row.Raw{Text: text, OK: true}
			}
		}
		records = append(records, r)
		at += size
	}
	d.pace.Learn(redisconn.Paced{Records: n, Bytes: at, Largest: largest})
	return records
}
