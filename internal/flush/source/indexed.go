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
	// removeEvery is how long flushed ids may stay in their stage. Most stages are finished earlier and removed as a whole, which costs
	// Redis almost nothing.
	removeEvery = 5 * time.Second
	// passedCost is the memory that a flushed id needs until it leaves its stage, in bytes, without the id's text.
	passedCost = 24
	// mostText is the maximum number of bytes of flushed ids that may stay in their stage, because a long id also keeps the text of other
	// ids in memory.
	mostText = 4 << 20
)

// IndexedOptions describe a job whose changed rows are listed in an index.
type IndexedOptions struct {
	Job     string
	Key     string // the pattern or key of the rows: see NewHashes and NewZset
	Changed string // the index's live key: a SET, or a ZSET with any scores
	Inputs  []string
	// PageRows and BatchBytes are the desired rows and bytes of a page, which is one transaction. Default 5000, and 8 MiB.
	PageRows, BatchBytes int
	// Lanes is the number of lanes that share the rows, by their ids. Default 1.
	Lanes int
	// MemoryBudget is the maximum memory, in bytes, of the ids that are held while reading. At most a quarter of this memory is for flushed
	// ids that are still in the stage. Default 32 MiB.
	MemoryBudget int
	// RemoveEvery is how long flushed ids may stay in a stage of less than 262,144 ids. After a crash the rows that were flushed in that
	// time are written again. Default 5 s.
	RemoveEvery time.Duration
}

// rowsReader reads the rows of ids in their order, until the page is full. Sources with an index differ only in their rowsReader.
type rowsReader interface {
	readRows(ctx context.Context, c redisconn.Conn, ids []string, p *paging.Filler) ([]row.Record, error)
}

// indexed reads the rows whose ids are in an index of changes. It is a flush.Source for any kind of row.
//
// The index is staged first, and the rows are read afterwards. So if a row changes after it was read, its id is in the live index again,
// and the next run flushes it. Writing a row twice is harmless, so pages need no ledger.
type indexed struct {
	staging.Key
	rowsReader
	of       string // the key or pattern of the rows, as in the configuration
	pageRows int
	bytes    int // the desired bytes of a page
	lanes    int
	budget   int

	every   time.Duration
	passed  []string  // flushed ids that are still in the stage, since Read began
	held    int       // the bytes of passed
	removed time.Time // the time of the last removal of such ids
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

// Read yields the rows of the stage's ids, page by page. It collects as many ids as fit the memory budget, and sorts them, so that each of
// their pages is in key order. Then it continues with the next ids. Flushed pages may leave the stage during the scan. On one server the
// scan still returns every id that stays in the stage from its first call to its last.
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

// page yields the rows of ids. If the rows are long, it yields several pages.
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

// Done removes the page's ids from the stage. It may also wait, and remove the ids of several pages together once the time RemoveEvery is
// over. If a row of the page has changed since it was read, its id is in the live index.
//
// If an earlier run left a stage unfinished, Done removes each page at once, so that even short runs finish the stage.
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
	clear(s.passed) // so that long ids do not stay in memory
	s.passed, s.held, s.removed = s.passed[:0], 0, time.Now()
	return nil
}

// letsWait reports whether flushed ids may stay in the stage until the time RemoveEvery is over.
func (s *indexed) letsWait(st flush.Stage) bool { return !st.Resumed && st.Size < int64(s.Large) }

// Discard removes the stage. If Done has failed or a scan has missed ids, the stage still has ids that were not flushed. Then Discard
// keeps the stage, and the next run continues with it.
func (s *indexed) Discard(ctx context.Context, st flush.Stage) error {
	left := len(s.passed)
	s.passed, s.held = nil, 0 // the stage is being removed
	return s.DiscardWith(ctx, st, left)
}

// Peek reads up to n rows whose ids are in the index. The rows of staged ids come first. Peek changes nothing.
func (s *indexed) Peek(ctx context.Context, n int) ([]row.Record, error) {
	c, err := s.Store.Conn(ctx, s.Live)
	if err != nil {
		return nil, err
	}
	defer c.Close() // returns it to the pool
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

// Mark marks rows as changed, so that they are flushed again. It may be repeated. newID must be globally unique, such as a UUID.
func (s *indexed) Mark(ctx context.Context, newID string, ids []string) error {
	return s.MarkChanged(ctx, newID, ids)
}

// idScan is one pass over the ids of a stage, in batches.
type idScan struct {
	key     string
	command string
	stride  int // 2 for ZSCAN, which returns a score after each member
	cursor  string
	pace    *redisconn.Pace
}

// next adds ids to the list. It stops when the list has as many ids as the argument most allows. It also stops when the memory budget is
// used up, or the pass is over (cursor "0").
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

// indexed converts the options to those of a source with an index.
func (o Options) indexed(key string, inputs []string) IndexedOptions {
	return IndexedOptions{
		Job: o.Job, Key: key, Changed: o.Changed, Inputs: inputs, PageRows: o.Rows, BatchBytes: o.Bytes, Lanes: o.Lanes,
		RemoveEvery: o.RemoveEvery,
	}
}

// onMissing returns the policy for the row of a changed id whose key is missing.
func onMissing(o Options) (flush.Policy, error) {
	return flush.Policy{OnMissing: flush.OnMissing(cmp.Or(o.OnMissing, "delete")), RepairPct: o.MaxPct}, nil
}

// indexCommands are the commands that stage and read an index of the given type.
func indexCommands(holds string) []string {
	index := map[string][]string{
		"set":  {"SCARD K", "SSCAN S 0", "SREM S m", "HDEL M passed", "HINCRBY M passed 1"},
		"zset": {"ZCARD K", "ZSCAN S 0", "ZREM S m", "HDEL M passed", "HINCRBY M passed 1"},
	}
	return slices.Concat(stagingCommands, index[holds])
}
