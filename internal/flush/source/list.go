package source

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/source/spec"
	"baton/internal/flush/source/staging"
	"baton/internal/redisconn"
)

// ListOptions describe a live list of JSON objects that producers add to with RPUSH.
type ListOptions struct {
	Job string
	Key string // the live key, of one shard
	// Inputs are what a record consists of: names of the objects' members, and
	// "$value", the whole text. "$value" wins over a member of that name.
	Inputs []string
	// PartRows is the number of items of a part, that is of a transaction. Default 5000.
	PartRows int
	// MemoryBudget bounds the replies that are under way, in bytes, by a sixteenth of it.
	// A part is held whole, whatever its size: for long items choose fewer rows. Default
	// 32 MiB.
	MemoryBudget int
}

// List reads one list of JSON objects, the oldest first: a flush.Source.
//
// Inserting is not idempotent, so a stage is cut into parts by position, and the
// database's ledger remembers each part. A part that is committed is trimmed off the
// stage's head. Parts are found by their distance from the tail, where nobody adds
// anything any more, so it does not matter how much of the head is still there.
type List struct {
	staging.Key
	inputs []string
	budget int
}

// NewList checks the options; it does not connect.
func NewList(store *redisconn.Store, o ListOptions) (*List, error) {
	key, err := staging.New(store, o.Job, o.Key, "list")
	if err != nil {
		return nil, err
	}
	key.Parts = positive(o.PartRows, defaultPageRows)
	return &List{Key: key, inputs: o.Inputs, budget: positive(o.MemoryBudget, defaultMemoryBudget)}, nil
}

var (
	listStageScript = loadScript("list_stage", 3)
	listTrimScript  = loadScript("list_trim", 2)
)

// Stage freezes what is pending under newID, or finds what an earlier run froze.
func (s *List) Stage(ctx context.Context, newID, _ string) (st flush.Stage, ok bool, err error) {
	verdict, reply, err := s.Freeze(ctx, listStageScript, s.Live, s.StageKey(), s.MetaKey(), newID, s.Parts, s.Job)
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
		return st, false, fmt.Errorf("%w: %q has no id in %q, so nobody can tell how much of it is in the database. "+
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

// changed says that a stage has not the items that it should have.
func (s *List) changed(id string, want, found int64) error {
	return fmt.Errorf("%w: batch %s of %q should have %d more items in %q, and has %d: somebody else has removed or added some, or "+
		"Redis has lost them. "+
		"Restore it; or give up what is left of it with UNLINK %s %s, if need be after a RENAME of what is there",
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
	items := newItems(s.inputs, s.budget)
	for part := cut.done; part < int64(st.Parts); part++ {
		records, err := s.part(ctx, c, st, cut, part, items)
		if err != nil {
			return err
		}
		if err := yield(flush.Page{Part: int(part), Lane: flush.InOrder, Records: records}); err != nil {
			return err
		}
	}
	return nil
}

// cut is how a stage was cut into parts, and how many of them have been taken off.
type cut struct{ size, rows, done int64 }

// cut reads that, and fails with flush.ErrStaleStage unless the stage still has its id.
func (s *List) cut(ctx context.Context, c redis.Conn, st flush.Stage) (cut, error) {
	reply, err := redis.Values(redis.DoContext(c, ctx, "HMGET", s.MetaKey(), "id", "size", "rows", "done"))
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
	if err == nil {
		_, err = redis.Scan(values, &found.size, &found.rows, &found.done)
	}
	if err == nil && found.rows < 1 {
		err = errors.New("it does not say how many rows a part has")
	}
	return found, s.Fail("look up the stage of", err)
}

// part reads one part, in several commands if need be. A command is followed by a
// look at the id: as an id goes with its stage and is never used again, and parts are
// taken off in order, what was read before a look that finds the id, and the part not
// taken off, was read from the intact part.
func (s *List) part(ctx context.Context, c redisconn.Conn, st flush.Stage, at cut, part int64, items *items) ([]row.Record, error) {
	first, end := part*at.rows, min((part+1)*at.rows, at.size)
	records := make([]row.Record, 0, end-first)
	for first < end {
		next := min(first+int64(items.pace.depth), end)
		look := redisconn.Cmd("HMGET", s.MetaKey(), "id", "size", "rows", "done")
		// Indexes from the tail: -1 is the last item of the stage.
		var looked []any
		var err error
		records, looked, err = items.read(ctx, c, records, &look, redisconn.Cmd("LRANGE", s.StageKey(), first-at.size, next-1-at.size))
		if err != nil {
			return nil, s.Fail("read the stage of", err)
		}
		now, err := s.cutOf(looked, st)
		if err != nil {
			return nil, err
		}
		if now.done > part { // committed by somebody else: only a newer leader can be
			return nil, s.Stale(st)
		}
		if int64(items.found) != next-first {
			return nil, s.changed(st.ID, next-first, int64(items.found))
		}
		first = next
	}
	return records, nil
}

// Done takes the page's part off the head of the stage, once.
func (s *List) Done(ctx context.Context, st flush.Stage, p flush.Page) error {
	verdict, err := redis.String(s.Script(ctx, "remove a flushed part from the stage of", listTrimScript, s.StageKey(), s.MetaKey(), st.ID,
		p.Part))
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

// Discard removes what is left of an empty stage: its id.
func (s *List) Discard(ctx context.Context, st flush.Stage) error {
	return s.DiscardWith(ctx, st, 0)
}

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
		return NewList(s, ListOptions{Job: o.Job, Key: key, Inputs: inputs, PartRows: o.Rows})
	},
}
