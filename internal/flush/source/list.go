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

// ListOptions describe a live list of JSON objects, to which producers add with RPUSH.
type ListOptions struct {
	Job string
	Key string // the live key, of one shard
	// Inputs are names of the objects' members, and "$value", which is the whole text. If a member has the name "$value", the input
	// "$value" is still the whole text.
	Inputs []string
	// A part is one transaction. It has at most PartRows items (default 5000) and at most BatchBytes bytes (default 8 MiB). An item longer
	// than BatchBytes is a part of its own.
	PartRows, BatchBytes int
}

// List reads one list of JSON objects, the oldest first. It is a flush.Source.
//
// Inserting is not idempotent. So a stage is cut into parts, and the database's ledger records the written parts. Each part begins where
// the last one ended, and has as many items as PartRows and BatchBytes allowed when the stage was made. So the parts depend only on the
// items, and every reading gives the same parts. Committed parts are trimmed from the stage's head, whole and in order, so the next part
// always begins at the head. Items are read by their distance from the tail. Because no producer adds to a stage, this index of an item
// does not depend on the trimmed parts.
type List struct {
	staging.Key
	inputs []string
	bytes  int // the maximum bytes of a part
}

// NewList checks the options and does not connect.
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
		return st, false, fmt.Errorf("%w: the stage %q has no id in %q, so baton cannot know which of its items are in the database. "+
			"If all items are there, delete the stage: UNLINK %s. If none is there, RENAME %s to a key that is flushed",
			staging.ErrBrokenStage, s.StageKey(), s.MetaKey(), s.StageKey(), s.StageKey())
	default: // "changed"
		var id string
		var want, found int64
		if _, err := redis.Scan(reply, &id, &want, &found); err != nil {
			return st, false, s.Fail("stage", err)
		}
		return st, false, s.changed(id, want, found)
	}
}

// changed returns the error about a stage that lacks some of its items, or has additional items.
func (s *List) changed(id string, want, found int64) error {
	return fmt.Errorf("%w: batch %s of %q should have %d more items in %q, but has %d: another client removed or added items, or "+
		"Redis lost some. "+
		"Restore the items, or delete the rest of the batch: UNLINK %s %s (to keep the items, RENAME the key first)",
		staging.ErrBrokenStage, id,
		s.Live, want, s.StageKey(), found, s.StageKey(), s.MetaKey())
}

// Read yields the parts that are still in the stage, each as one page.
func (s *List) Read(ctx context.Context, st flush.Stage, yield func(flush.Page) error) error {
	c, err := s.Store.Conn(ctx, s.Live)
	if err != nil {
		return err
	}
	defer c.Close() // returns it to the pool
	cut, err := s.cut(ctx, c, st)
	if err != nil {
		return err
	}
	items := newItems(s.inputs, s.bytes)
	var read []row.Record // records that are not in a part yet
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

// cut describes how a stage is cut into parts, and how many of its parts have been removed from its head.
type cut struct {
	size        int64 // the number of items at staging
	rows, bytes int64 // the limits of a part; bytes is 0 if an older version of baton, which had no such limit, made the stage
	done, taken int64 // the numbers of trimmed parts and items
}

// metaOfCut lists the fields that describe the cut, in the hash that describes the stage.
var metaOfCut = []any{"id", "size", "done", "rows", "part_rows", "part_bytes", "taken"}

func (s *List) askCut() redisconn.Command {
	return redisconn.Cmd("HMGET", append([]any{s.MetaKey()}, metaOfCut...)...)
}

// cut reads how the stage is cut. It returns flush.ErrStaleStage if the stage no longer has its id.
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
	if rows > 0 { // an older version's parts, which all have the same number of items
		found.rows, found.bytes, found.taken = rows, 0, rows*found.done
	}
	if err == nil && found.rows < 1 {
		err = errors.New("the stage does not have the number of rows of a part")
	}
	return found, s.Fail("look up the stage of", err)
}

// more reads further items of a part, beginning with the item at the index in the argument first, and then reads the stage's id. Parts are
// trimmed in order, and an id is removed with its stage and never used again. So if the stage still has the id, and the part was not
// trimmed, all items that were read belong to the part.
//
// The length of unread items is unknown, so one command asks for only a few items. If the previous items were short, many commands are sent
// together.
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
	if now.done > part { // another process has committed the part, and only a newer leader can do that
		return nil, s.Stale(st)
	}
	if int64(items.found) != end-first {
		return nil, s.changed(st.ID, end-first, int64(items.found))
	}
	return records, nil
}

// Done removes the page's part from the head of the stage. If the part was already removed, Done does nothing.
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
		return fmt.Errorf("cannot remove part %d of batch %s of %q before the previous part", p.Part, st.ID, s.Live)
	}
	return nil
}

// Discard removes the id of an empty stage.
func (s *List) Discard(ctx context.Context, st flush.Stage) error {
	return s.DiscardWith(ctx, st, 0)
}

// fewItems is small enough for one command, no matter how long the items are: eight items of a megabyte take Redis some 7 ms.
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

// items reads items of a list. It sends one question at a time, each with one or more commands.
type items struct {
	inputs []string
	object object.Decoder
	pace   redisconn.Pace
	found  int // the number of items in the last reply
}

func newItems(inputs []string, page int) *items {
	return &items{inputs: inputs, object: object.New(inputs), pace: redisconn.NewPace(paging.Depth, paging.Reply(page))}
}

// read adds a record for each text of the ranges. If the argument look is not nil, read sends that command after the ranges, and the result
// looked is the reply to that command.
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

// decode adds a record for each of the first n texts. All of them share one allocation. The key of a record is its whole text, so that a
// dead letter also keeps the members that no column uses.
func (d *items) decode(records []row.Record, a *redisconn.Answers, n int) []row.Record {
	d.found = n
	raw, all := a.All, a.Take()
	width, at, largest := len(d.inputs), 0, 0
	raws := make([]row.Raw, n*width)
	for i, size := range a.Sizes[:n] {
		size = max(0, size) // a missing text has no size
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
