package source

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/source/spec"
	"baton/internal/redisconn"
)

const (
	// removeChunk is how many members one script removes: Redis serves nobody else meanwhile.
	removeChunk = 1000
	// removeEvery is how long ids that were flushed may stay in their stage. Most stages
	// are done by then and go as a whole, which costs Redis next to nothing.
	removeEvery = 5 * time.Second
	// firstPages of each lane are written while the ids of the others are collected and
	// sorted.
	firstPages = 2
)

// HashesOptions describe a hashes job: one hash for each row, and an index of the
// ids that were changed.
type HashesOptions struct {
	Job     string
	Key     string // pattern of the rows' keys: "user:<id>"
	Changed string // the index's live key: a SET, or a ZSET scored by anything
	// Inputs are what a record consists of: the captured name ("id"), and fields
	// of the hash. The captured name wins over a field of that name.
	Inputs []string
	// PageRows is the number of rows of a page, that is of a transaction. Default 5000.
	PageRows int
	// Lanes is how many lanes the rows are dealt out to, by their ids. Default 1.
	Lanes int
	// MemoryBudget bounds the ids held while reading, in bytes, and by a quarter of it
	// each page, which is longer by a few rows at most, and those that RemoveEvery lets
	// wait. Default 32 MiB.
	MemoryBudget int
	// RemoveEvery is how long ids that were flushed may stay in a stage of less than
	// 262,144 ids: so much is written again after a crash. Default 5 s.
	RemoveEvery time.Duration
}

// Hashes reads the rows that an index says have changed: a flush.Source.
//
// The index is staged first and the rows are read after that, so a change that
// comes too late for the reading has put its id into the live index again, and is
// flushed next. Writing a row twice is harmless; pages need no ledger.
type Hashes struct {
	stagedKey
	rowReader
	pageRows int
	lanes    int
	budget   int

	every   time.Duration
	passed  []string  // ids of the stage that Read began with: flushed, and still in it
	held    int       // bytes of them
	removed time.Time // when such were removed last
}

// NewHashes checks the options; it does not connect.
func NewHashes(store *redisconn.Store, o HashesOptions) (*Hashes, error) {
	key, err := newStagedKey(store, o.Job, o.Changed, "set", "zset")
	if err != nil {
		return nil, err
	}
	row, err := spec.ParseRowKey(o.Key)
	if err != nil {
		return nil, err
	}
	h := &Hashes{
		stagedKey: key, rowReader: rowReader{redis: store, row: row, inputs: o.Inputs},
		pageRows: positive(o.PageRows, defaultPageRows),
		lanes:    positive(o.Lanes, 1),
		budget:   positive(o.MemoryBudget, defaultMemoryBudget),
		every:    cmp.Or(o.RemoveEvery, removeEvery),
	}
	for _, input := range o.Inputs {
		if input != row.Name {
			h.fields = append(h.fields, input)
		}
	}
	return h, nil
}

// Read yields the rows of the stage's ids, page by page. As many ids as fit the
// memory budget are collected and sorted, so that pages come in key order; the next
// ones are collected while these are written. Pages that are done may leave the stage
// meanwhile: on one server a scan returns whatever stays in the stage from
// its first call to its last.
func (s *Hashes) Read(ctx context.Context, st flush.Stage, yield func(flush.Page) error) error {
	s.passed, s.held, s.removed = nil, 0, time.Now()
	c, err := s.store.Conn(ctx, s.live)
	if err != nil {
		return err
	}
	defer c.Close()
	kind, err := s.check(ctx, c, st)
	if err != nil {
		return err
	}
	if kind == "none" {
		return nil
	}
	scan := idScan{key: s.stage(), command: "SSCAN", stride: 1, cursor: "0"}
	if kind == "zset" {
		scan.command, scan.stride = "ZSCAN", 2
	}
	ctx, stop := context.WithCancelCause(ctx)
	piles := make(chan *idPile)
	scanning := make(chan error, 1)
	go func() {
		defer close(piles)
		defer func() {
			if p := recover(); p != nil { // a failed run, as in any other part of a job
				scanning <- fmt.Errorf("collecting the ids of %q panicked: %v\n%s", s.live, p, debug.Stack())
			}
		}()
		scanning <- s.scanAhead(ctx, scan, piles)
	}()
	err = s.readPiles(ctx, c, piles, yield)
	stop(err)
	if scanned := <-scanning; err == nil {
		err = scanned
	}
	return err
}

// readPiles yields the rows of all ids, until there are no more or one fails.
func (s *Hashes) readPiles(ctx context.Context, c redis.Conn, piles <-chan *idPile, yield func(flush.Page) error) error {
	rows := newPace(s.budget)
	rows.page /= s.lanes
	for ids := range piles {
		for lane, page := range ids.pages(s.pageRows, s.lanes) {
			if err := s.page(ctx, c, lane, page, &rows, yield); err != nil {
				return err
			}
		}
	}
	return nil
}

// scanAhead collects ids while those that were collected before are written. The first
// pages are not waited for until everything is sorted.
func (s *Hashes) scanAhead(ctx context.Context, scan idScan, piles chan<- *idPile) error {
	c, err := s.store.Conn(ctx, s.live)
	if err != nil {
		return err
	}
	defer c.Close()
	most := firstPages * s.pageRows * s.lanes
	for first := true; first || scan.cursor != "0"; first = false {
		ids, err := scan.next(ctx, c, s.budget/2, most)
		if err != nil {
			return s.fail("read the stage of", err)
		}
		select {
		case piles <- ids:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		most = math.MaxInt
	}
	return nil
}

// page yields the rows of ids, as several pages if they are long.
func (s *Hashes) page(ctx context.Context, c redis.Conn, lane int, ids []string, rows *pace, yield func(flush.Page) error) error {
	for len(ids) > 0 {
		records, err := s.readRows(ctx, c, ids, rows)
		if err != nil {
			return s.fail(fmt.Sprintf("read rows %q of", s.row.Key("<"+s.row.Name+">")), err)
		}
		if err := yield(flush.Page{Part: -1, Lane: lane, Records: records}); err != nil {
			return err
		}
		ids = ids[len(records):]
	}
	return nil
}

// Done takes the page's ids out of the stage, soon: see removeEvery. A change of such a
// row since it was read is in the live index.
//
// A stage that an earlier run has not finished is cleared page by page: however short the
// runs are, it comes to an end.
func (s *Hashes) Done(ctx context.Context, st flush.Stage, p flush.Page) error {
	for _, r := range p.Records {
		s.passed = append(s.passed, r.Key)
		s.held += idCost + len(r.Key)
	}
	if !st.Resumed && st.Size < int64(s.large) && s.held < s.budget/4 && time.Since(s.removed) < s.every {
		return nil
	}
	for ids := range slices.Chunk(s.passed, removeChunk) {
		args := redis.Args{s.stage(), s.meta(), st.ID}.AddFlat(ids)
		ours, err := redis.Bool(s.script(ctx, "remove flushed ids from the stage of", removeScript, args...))
		if err != nil {
			return err
		}
		if !ours {
			return s.stale(st)
		}
	}
	s.passed, s.held, s.removed = nil, 0, time.Now()
	return nil
}

// Discard removes the stage, unless there is something left in it that was not flushed:
// Done has failed, or a scan has missed it. The next run resumes what stays.
func (s *Hashes) Discard(ctx context.Context, st flush.Stage) error {
	left := len(s.passed)
	s.passed, s.held = nil, 0 // nobody asks for them any more
	return s.discard(ctx, st, left)
}

// idScan is one pass over the ids of a stage, in batches.
type idScan struct {
	key     string
	command string
	stride  int // a ZSCAN returns a score after each member
	cursor  string
}

// next scans until the budget is used up, there are that many ids, or the pass is over
// (cursor "0"), and returns what it found, sorted and without duplicates.
func (s *idScan) next(ctx context.Context, c redis.Conn, budget, most int) (*idPile, error) {
	ids := &idPile{}
	element := 0
	enough := func() bool { return ids.full(budget) || len(ids.places) >= most }
	next, err := redisconn.ScanKey(ctx, c, s.command, s.key, s.cursor, enough, func(member []byte) {
		if element%s.stride == 0 {
			ids.add(member)
		}
		element++
	})
	if err != nil {
		return nil, err
	}
	s.cursor = next
	ids.sort()
	return ids, nil
}

var hashesSpec = Spec{
	Kind: spec.Named("hashes"),
	inputs: func(o Options) (row.Inputs, error) {
		return captured(o, row.Inputs{Fields: true})
	},
	policy: func(o Options) (flush.Policy, error) {
		return flush.Policy{OnMissing: flush.OnMissing(cmp.Or(o.OnMissing, "delete"))}, nil
	},
	commands: func(_ Use, holds string) []string {
		index := map[string][]string{
			"set":  {"SCARD K", "SSCAN S 0", "SREM S m"},
			"zset": {"ZCARD K", "ZSCAN S 0", "ZREM S m"},
		}
		return slices.Concat(stagingCommands, index[holds], hashCommands)
	},
	open: func(s *redisconn.Store, key string, o Options, inputs []string) (flush.Source, error) {
		return NewHashes(s, HashesOptions{
			Job: o.Job, Key: key, Changed: o.Changed, Inputs: inputs, PageRows: o.Rows, Lanes: o.Lanes,
			RemoveEvery: o.RemoveEvery,
		})
	},
}

// hashCommands read a row.
var hashCommands = []string{"MULTI", "EXISTS R", "HMGET R f", "EXEC", "EVAL s 1 R", "EVALSHA s 1 R"}
