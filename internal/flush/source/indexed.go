package source

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/source/idlist"
	"baton/internal/flush/source/paging"
	"baton/internal/flush/source/staging"
	"baton/internal/redisconn"
)

const (
	// removeEvery is how long flushed ids may stay in their stage. Most stages are done by then and are removed as a whole, which costs
	// Redis almost nothing.
	removeEvery = 5 * time.Second
	// passedCost is the memory of a flushed id beside its text, in bytes.
	passedCost = 24
	// mostText is how much text of flushed ids may wait: a long id keeps the text of others in memory, too.
	mostText = 4 << 20
)

// IndexedOptions describe a job whose changed rows are listed in an index.
type IndexedOptions struct {
	Job     string
	Key     string // of the rows: see NewHashes
	Changed string // the index's live key: a SET, or a ZSET scored by anything
	Inputs  []string
	// PageRows and BatchBytes are the aim for the rows of a page, that is of a transaction,
	// and for their bytes. Default 5000, and 8 MiB.
	PageRows, BatchBytes int
	// Lanes is how many lanes the rows are dealt out to, by their ids. Default 1.
	Lanes int
	// MemoryBudget bounds the ids held while reading, in bytes, and by a quarter of it
	// those that RemoveEvery lets wait. Default 32 MiB.
	MemoryBudget int
	// RemoveEvery is how long flushed ids may stay in a stage of less than 262,144 ids: after a crash the rows of that time are written
	// again. Default 5 s.
	RemoveEvery time.Duration
}

// rowsReader reads the rows of ids in their order, until the page is full. Sources with an index differ in it alone.
type rowsReader interface {
	readRows(ctx context.Context, c redisconn.Conn, ids []string, p *paging.Filler) ([]row.Record, error)
}

// indexed reads the rows whose ids are in an index of changes: a flush.Source for any kind of row.
//
// The index is staged first and the rows are read after that. So a change that comes after the reading has put its id into the live index
// again, and is flushed next. Writing a row twice is harmless; pages need no ledger.
type indexed struct {
	staging.Key
	rowsReader
	of       string // the key of the rows, as the configuration has it
	pageRows int
	bytes    int // of a page
	lanes    int
	budget   int

	every   time.Duration
	passed  []string  // ids of the stage that Read began with: flushed, and still in it
	held    int       // bytes of them
	removed time.Time // when such ids were removed last
}

func newIndexed(store *redisconn.Store, o IndexedOptions, rows rowsReader) (indexed, error) {
	key, err := staging.New(store, o.Job, o.Changed, "set", "zset")
	return indexed{
		Key: key, rowsReader: rows, of: o.Key,
		pageRows: positive(o.PageRows, defaultPageRows),
		bytes:    paging.Bytes(o.BatchBytes, o.Lanes),
		lanes:    positive(o.Lanes, 1),
		budget:   positive(o.MemoryBudget, defaultMemoryBudget),
		every:    cmp.Or(o.RemoveEvery, removeEvery),
	}, err
}

// Read yields the rows of the stage's ids, page by page. As many ids as fit the memory budget are collected and sorted, so that pages
// come in key order; then the next ones. Flushed pages may leave the stage meanwhile: on one server a scan returns every id that stays in
// the stage from its first call to its last.
func (s *indexed) Read(ctx context.Context, st flush.Stage, yield func(flush.Page) error) error {
	s.passed, s.held, s.removed = nil, 0, time.Now()
	if s.letsWait(st) {
		s.passed = make([]string, 0, min(int(st.Size), s.budget/4/passedCost))
	}
	c, err := s.Store.Conn(ctx, s.Live)
	if err != nil {
		return err
	}
	defer c.Close()
	kind, err := s.Check(ctx, c, st)
	if err != nil {
		return err
	}
	if kind == "none" {
		return nil
	}
	scan := idScan{key: s.StageKey(), command: "SSCAN", stride: 1, cursor: "0", pace: redisconn.NewScanPace()}
	if kind == "zset" {
		scan.command, scan.stride = "ZSCAN", 2
	}
	rows := paging.NewFiller(s.bytes)
	return idlist.Pass{
		Page: s.pageRows, Lanes: s.lanes, Group: s.pageRows, Budget: s.budget / 2, About: st.Size,
		Collect: func(ctx context.Context, ids *idlist.List, most, budget int) (more bool, err error) {
			err = s.Fail("read the stage of", scan.next(ctx, c, ids, budget, most))
			return scan.cursor != "0", err
		},
		Use: func(lane int, ids []string) error { return s.page(ctx, c, lane, ids, &rows, yield) },
	}.Run(ctx)
}

// page yields the rows of ids, as several pages if they are long.
func (s *indexed) page(ctx context.Context, c redisconn.Conn, lane int, ids []string, rows *paging.Filler,
	yield func(flush.Page) error,
) error {
	for len(ids) > 0 {
		records, err := s.readRows(ctx, c, ids, rows)
		if err != nil {
			return s.Fail(fmt.Sprintf("read rows %q of", s.of), err)
		}
		if err := yield(flush.Page{Part: -1, Lane: lane, Records: records, Left: rows.Left()}); err != nil {
			return err
		}
		ids = ids[len(records):]
	}
	return nil
}

// Done removes the page's ids from the stage within removeEvery. A change of such a row since it was read is in the live index.
//
// A stage that an earlier run has not finished is cleared page by page: however short the
// runs are, it comes to an end.
func (s *indexed) Done(ctx context.Context, st flush.Stage, p flush.Page) error {
	for _, r := range p.Records {
		s.passed = append(s.passed, r.Key)
		s.held += passedCost + len(r.Key)
	}
	if s.letsWait(st) && s.held < s.budget/4 && s.held < mostText+passedCost*len(s.passed) && time.Since(s.removed) < s.every {
		return nil
	}
	if err := s.Remove(ctx, st, s.passed); err != nil {
		return err
	}
	clear(s.passed) // long ones must not stay in memory
	s.passed, s.held, s.removed = s.passed[:0], 0, time.Now()
	return nil
}

// letsWait reports whether flushed ids may stay in the stage for a while.
func (s *indexed) letsWait(st flush.Stage) bool { return !st.Resumed && st.Size < int64(s.Large) }

// Discard removes the stage, unless it still holds ids that were not flushed: Done has failed, or a scan has missed them. The next run
// resumes such a stage.
func (s *indexed) Discard(ctx context.Context, st flush.Stage) error {
	left := len(s.passed)
	s.passed, s.held = nil, 0 // the stage is being removed
	return s.DiscardWith(ctx, st, left)
}

// Peek reads up to n rows whose ids are in the index, the staged ones first. It changes
// nothing.
func (s *indexed) Peek(ctx context.Context, n int) ([]row.Record, error) {
	c, err := s.Store.Conn(ctx, s.Live)
	if err != nil {
		return nil, err
	}
	defer c.Close() // it goes back to the pool
	var ids []string
	for _, key := range []string{s.StageKey(), s.Live} {
		members, err := glimpse(ctx, c, key, n-len(ids), "set", "zset")
		if err != nil {
			return nil, s.Fail("look into", err)
		}
		for _, m := range members {
			if !slices.Contains(ids, m.Field) {
				ids = append(ids, m.Field)
			}
		}
	}
	rows := paging.NewFiller(s.bytes)
	records, err := s.readRows(ctx, c, ids, &rows)
	return records, s.Fail("look at the rows of", err)
}

// Mark marks rows as changed, so that they are flushed again. It may be repeated. newID is
// globally unique, such as a UUID.
func (s *indexed) Mark(ctx context.Context, newID string, ids []string) error {
	return s.MarkChanged(ctx, newID, ids)
}

// idScan is one pass over the ids of a stage, in batches.
type idScan struct {
	key     string
	command string
	stride  int // a ZSCAN returns a score after each member
	cursor  string
	pace    *redisconn.Pace
}

// next adds ids to the list until the budget is used up, the list has that many, or the pass is over (cursor "0").
func (s *idScan) next(ctx context.Context, c redisconn.Conn, ids *idlist.List, budget, most int) error {
	element := 0
	enough := func() bool { return ids.Full(budget) || ids.Len() >= most }
	next, err := c.ScanKey(ctx, s.command, s.key, s.cursor, s.pace, enough, func(member []byte) {
		if element%s.stride == 0 {
			ids.Add(member)
		}
		element++
	})
	if err != nil {
		return err
	}
	s.cursor = next
	return nil
}

// indexed are the options of a source with an index.
func (o Options) indexed(key string, inputs []string) IndexedOptions {
	return IndexedOptions{
		Job: o.Job, Key: key, Changed: o.Changed, Inputs: inputs, PageRows: o.Rows, BatchBytes: o.Bytes, Lanes: o.Lanes,
		RemoveEvery: o.RemoveEvery,
	}
}

// onMissing is the policy for the row of a changed id whose key is gone.
func onMissing(o Options) (flush.Policy, error) {
	return flush.Policy{OnMissing: flush.OnMissing(cmp.Or(o.OnMissing, "delete")), RepairPct: o.MaxPct}, nil
}

// indexCommands are the commands that stage and read an index of that type.
func indexCommands(holds string) []string {
	index := map[string][]string{
		"set":  {"SCARD K", "SSCAN S 0", "SREM S m", "HDEL M passed", "HINCRBY M passed 1"},
		"zset": {"ZCARD K", "ZSCAN S 0", "ZREM S m", "HDEL M passed", "HINCRBY M passed 1"},
	}
	return slices.Concat(stagingCommands, index[holds])
}
