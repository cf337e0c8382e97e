package flush_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"baton/internal/flush"
	"baton/internal/flush/flushtest"
	"baton/internal/flush/row"
)

// errLost is the error of a connection that broke before or after the other side acted.
var errLost = errors.New("connection lost")

// faults decides by a call's name what happens to the call. before means that it fails before it acts, and after that it fails afterwards.
type faults struct {
	mu   sync.Mutex
	plan func(call string) (before, after bool)
}

func (f *faults) around(call string, act func() error) error {
	var before, after bool
	if f != nil && f.plan != nil {
		f.mu.Lock()
		before, after = f.plan(call)
		f.mu.Unlock()
	}
	if before {
		return fmt.Errorf("%s: %w", call, errLost)
	}
	if err := act(); err != nil {
		return err
	}
	if after {
		return fmt.Errorf("reply of %s: %w", call, errLost)
	}
	return nil
}

// memory stands for Redis: one hash of counters, and hashes with their index. It also remembers everything that was ever added, to compare
// that with the database.
type memory struct {
	mu      sync.Mutex
	live    map[string]int64
	staged  map[string]int64
	stageID string // of the stage of counters
	total   map[string]int64

	hashes   map[string]string // id -> name
	changed  map[string]bool
	marked   map[string]bool // the staged index
	markedID string

	queue queue
}

func newMemory() *memory {
	return &memory{
		live: map[string]int64{}, total: map[string]int64{},
		hashes: map[string]string{}, changed: map[string]bool{}, marked: map[string]bool{},
	}
}

func (m *memory) count(field string, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live[field] += n
	m.total[field] += n
}

func (m *memory) set(id, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hashes[id] = name
	m.changed[id] = true
}

func (m *memory) remove(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.hashes, id)
	m.changed[id] = true
}

const fakePage = 3 // records in a page

// fakeCounters reads memory.live as the real counters do. Every reading gives the same parts, which are removed as a whole.
type fakeCounters struct {
	*memory
	*faults
	inputs []string
}

func (s *fakeCounters) Name() string { return "views" }

func (s *fakeCounters) Stage(_ context.Context, newID, _ string) (st flush.Stage, ok bool, err error) {
	err = s.around("stage", func() error {
		s.memory.mu.Lock()
		defer s.memory.mu.Unlock()
		resumed := s.staged != nil
		if !resumed {
			if len(s.live) == 0 {
				return nil
			}
			s.staged, s.live, s.stageID = s.live, map[string]int64{}, newID
		}
		parts := (len(s.staged) + fakePage - 1) / fakePage
		st, ok = flush.Stage{ID: s.stageID, Parts: parts, Size: int64(len(s.staged)), Resumed: resumed && s.stageID != newID}, true
		return nil
	})
	return st, ok && err == nil, err
}

func (s *fakeCounters) Read(_ context.Context, st flush.Stage, yield func(flush.Page) error) error {
	s.memory.mu.Lock()
	fields := slices.Sorted(maps.Keys(s.staged))
	if s.stageID != st.ID {
		s.memory.mu.Unlock()
		return flush.ErrStaleStage
	}
	s.memory.mu.Unlock()
	part := 0
	for chunk := range slices.Chunk(fields, fakePage) {
		p := flush.Page{Part: part}
		part++
		err := s.around("read", func() error {
			s.memory.mu.Lock()
			defer s.memory.mu.Unlock()
			if s.stageID != st.ID {
				return flush.ErrStaleStage
			}
			for _, f := range chunk {
				p.Records = append(p.Records,
					s.record(f, map[string]string{row.InputField: f, row.InputValue: strconv.FormatInt(s.staged[f], 10)}))
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := yield(p); err != nil {
			return err
		}
	}
	return nil
}

func (s *fakeCounters) record(key string, have map[string]string) row.Record {
	return recordFrom(s.inputs, key, have)
}

func recordFrom(inputs []string, key string, have map[string]string) row.Record {
	r := row.Record{Key: key}
	for _, name := range inputs {
		text, ok := have[name]
		r.Inputs = append(r.Inputs, row.Raw{Text: text, OK: ok})
	}
	return r
}

func (s *fakeCounters) Discard(_ context.Context, st flush.Stage) error {
	return s.around("discard", func() error {
		s.memory.mu.Lock()
		defer s.memory.mu.Unlock()
		if s.stageID != st.ID {
			return flush.ErrStaleStage
		}
		s.staged, s.stageID = nil, ""
		return nil
	})
}

func (s *fakeCounters) Backlog(context.Context) (int64, error) {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	return int64(len(s.live) + len(s.staged)), nil
}

// fakeHashes reads the hashes that the index names; its pages are idempotent.
type fakeHashes struct {
	*memory
	*faults
	inputs []string
}

func (s *fakeHashes) Name() string { return "user" }

func (s *fakeHashes) Stage(_ context.Context, newID, _ string) (st flush.Stage, ok bool, err error) {
	err = s.around("stage", func() error {
		s.memory.mu.Lock()
		defer s.memory.mu.Unlock()
		resumed := len(s.marked) > 0
		if !resumed {
			if len(s.changed) == 0 {
				return nil
			}
			s.marked, s.changed, s.markedID = s.changed, map[string]bool{}, newID
		}
		st, ok = flush.Stage{ID: s.markedID, Size: int64(len(s.marked)), Resumed: resumed && s.markedID != newID}, true
		return nil
	})
	return st, ok && err == nil, err
}

func (s *fakeHashes) Read(_ context.Context, _ flush.Stage, yield func(flush.Page) error) error {
	s.memory.mu.Lock()
	ids := slices.Sorted(maps.Keys(s.marked))
	s.memory.mu.Unlock()
	for chunk := range slices.Chunk(ids, fakePage) {
		p := flush.Page{Part: -1}
		err := s.around("read", func() error {
			s.memory.mu.Lock()
			defer s.memory.mu.Unlock()
			for _, id := range chunk {
				have := map[string]string{"id": id}
				name, there := s.hashes[id]
				if there {
					have["name"] = name
				}
				r := recordFrom(s.inputs, id, have)
				r.Gone = !there
				p.Records = append(p.Records, r)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := yield(p); err != nil {
			return err
		}
	}
	return nil
}

func (s *fakeHashes) Done(_ context.Context, st flush.Stage, p flush.Page) error {
	return s.around("done", func() error {
		s.memory.mu.Lock()
		defer s.memory.mu.Unlock()
		if s.markedID != st.ID {
			return flush.ErrStaleStage
		}
		for _, r := range p.Records {
			delete(s.marked, r.Key)
		}
		return nil
	})
}

func (s *fakeHashes) Discard(_ context.Context, st flush.Stage) error {
	return s.around("discard", func() error {
		s.memory.mu.Lock()
		defer s.memory.mu.Unlock()
		if s.markedID != st.ID {
			return flush.ErrStaleStage
		}
		if len(s.marked) == 0 {
			s.markedID = ""
		}
		return nil
	})
}

func (s *fakeHashes) Backlog(context.Context) (int64, error) {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	return int64(len(s.changed) + len(s.marked)), nil
}

// base stands for the database.
type base struct {
	*flushtest.Database
	reads atomic.Int64 // readings of the catalogue
	takes atomic.Int64
}

func newBase(tables ...row.Table) *base { return &base{Database: flushtest.NewDatabase(tables...)} }

// fakeSink is one node's connection to a base.
type fakeSink struct {
	*base
	*faults
}

func (s *fakeSink) Table(ctx context.Context, name string) (t row.Table, err error) {
	err = s.around("table", func() error {
		s.reads.Add(1)
		t, err = s.base.Table(ctx, name)
		return err
	})
	return t, err
}

func (s *fakeSink) TakeOver(ctx context.Context, f flush.Fence) error {
	return s.transient(s.around("take over", func() error {
		s.takes.Add(1)
		return s.base.TakeOver(ctx, f)
	}))
}

func (s *fakeSink) Positions(ctx context.Context, f flush.Fence, shards []string) (found []string, err error) {
	err = s.around("positions", func() error {
		found, err = s.base.Positions(ctx, f, shards)
		return err
	})
	return found, s.transient(err)
}

func (s *fakeSink) Marks(ctx context.Context, f flush.Fence, names []string) (found []string, err error) {
	err = s.around("marks", func() error {
		found, err = s.base.Marks(ctx, f, names)
		return err
	})
	return found, s.transient(err)
}

func (s *fakeSink) Apply(ctx context.Context, f flush.Fence, p *row.Plan, b flush.Batch) (out flush.Outcome, err error) {
	err = s.around("apply", func() error {
		out, err = s.base.Apply(ctx, f, p, b)
		return err
	})
	return out, s.transient(err)
}

// transient turns a lost connection into the error that a sink returns for it.
func (s *fakeSink) transient(err error) error {
	if errors.Is(err, errLost) {
		return fmt.Errorf("%w: %w", flush.ErrTransient, err)
	}
	return err
}

// fakeLead is the leadership of one term.
type fakeLead struct {
	owner string
	mu    sync.Mutex
	epoch int64
	raise func(floor int64) (int64, error) // nil: this node has the lock, and gets the epoch
}

func (l *fakeLead) Owner() string { return l.owner }

func (l *fakeLead) Epoch() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch
}

func (l *fakeLead) Raise(_ context.Context, floor int64) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.raise != nil {
		return l.raise(floor)
	}
	l.epoch = max(l.epoch, floor) + 1
	return l.epoch, nil
}

// fakeSource is a fake with a function that adds data to it, for the conformance suite.
type fakeSource struct {
	Open func(inputs []string) flush.Source
	Add  func(n int)
}

// newFakeSource returns a fake without pending changes.
func newFakeSource(kind string) fakeSource {
	m := newMemory()
	count := func(n int) { m.count("f"+strconv.Itoa(n), int64(n+1)) }
	switch kind {
	case "counters":
		return fakeSource{func(inputs []string) flush.Source { return &fakeCounters{memory: m, inputs: inputs} }, count}
	case "totals":
		// Done is hidden: a flush never calls it.
		return fakeSource{func(inputs []string) flush.Source {
			return struct{ flush.Source }{&fakeTotals{memory: m, inputs: inputs}}
		}, count}
	}
	return fakeSource{func(inputs []string) flush.Source { return &fakeHashes{memory: m, inputs: inputs} },
		func(n int) { m.set(strconv.Itoa(n), "v"+strconv.Itoa(n)) }}
}
