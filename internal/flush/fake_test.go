package flush

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// errLost is what a connection says that broke before or after the other side acted.
var errLost = errors.New("connection lost")

// faults decides what becomes of a call to the outside, by its name. It answers
// with the call's fate before it acts and after it has acted.
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

// memory stands for Redis: one hash of counters, and hashes with their index.
// It also remembers what was ever added, to hold the database against.
type memory struct {
	mu      sync.Mutex
	live    map[string]int64
	staged  map[string]int64
	stageID string // of the counters
	total   map[string]int64

	hashes   map[string]string // id -> name
	changed  map[string]bool
	marked   map[string]bool // the staged index
	markedID string
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

const fakePage = 3 // records a page

// fakeCounters reads memory.live as the real counters do: parts that are the
// same at every reading, removed as a whole.
type fakeCounters struct {
	*memory
	*faults
	inputs []string
}

func (s *fakeCounters) Name() string { return "views" }

func (s *fakeCounters) Stage(_ context.Context, newID, _ string) (st Stage, ok bool, err error) {
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
		st, ok = Stage{ID: s.stageID, Parts: parts, Size: int64(len(s.staged)), Resumed: resumed && s.stageID != newID}, true
		return nil
	})
	return st, ok && err == nil, err
}

func (s *fakeCounters) Read(_ context.Context, st Stage, yield func(Page) error) error {
	s.memory.mu.Lock()
	fields := slices.Sorted(maps.Keys(s.staged))
	if s.stageID != st.ID {
		s.memory.mu.Unlock()
		return ErrStaleStage
	}
	s.memory.mu.Unlock()
	part := 0
	for chunk := range slices.Chunk(fields, fakePage) {
		p := Page{Part: part}
		part++
		err := s.around("read", func() error {
			s.memory.mu.Lock()
			defer s.memory.mu.Unlock()
			if s.stageID != st.ID {
				return ErrStaleStage
			}
			for _, f := range chunk {
				p.Records = append(p.Records, s.record(f, map[string]string{InputField: f, InputValue: strconv.FormatInt(s.staged[f], 10)}))
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

func (s *fakeCounters) record(key string, have map[string]string) Record {
	return recordFrom(s.inputs, key, have)
}

func recordFrom(inputs []string, key string, have map[string]string) Record {
	r := Record{Key: key}
	for _, name := range inputs {
		text, ok := have[name]
		r.Inputs = append(r.Inputs, Raw{Text: text, OK: ok})
	}
	return r
}

func (s *fakeCounters) Done(context.Context, Stage, Page) error {
	return s.around("done", func() error { return nil })
}

func (s *fakeCounters) Discard(_ context.Context, st Stage) error {
	return s.around("discard", func() error {
		s.memory.mu.Lock()
		defer s.memory.mu.Unlock()
		if s.stageID != st.ID {
			return ErrStaleStage
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

func (s *fakeHashes) Stage(_ context.Context, newID, _ string) (st Stage, ok bool, err error) {
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
		st, ok = Stage{ID: s.markedID, Size: int64(len(s.marked)), Resumed: resumed && s.markedID != newID}, true
		return nil
	})
	return st, ok && err == nil, err
}

func (s *fakeHashes) Read(_ context.Context, _ Stage, yield func(Page) error) error {
	s.memory.mu.Lock()
	ids := slices.Sorted(maps.Keys(s.marked))
	s.memory.mu.Unlock()
	for chunk := range slices.Chunk(ids, fakePage) {
		p := Page{Part: -1}
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

func (s *fakeHashes) Done(_ context.Context, st Stage, p Page) error {
	return s.around("done", func() error {
		s.memory.mu.Lock()
		defer s.memory.mu.Unlock()
		if s.markedID != st.ID {
			return ErrStaleStage
		}
		for _, r := range p.Records {
			delete(s.marked, r.Key)
		}
		return nil
	})
}

func (s *fakeHashes) Discard(_ context.Context, st Stage) error {
	return s.around("discard", func() error {
		s.memory.mu.Lock()
		defer s.memory.mu.Unlock()
		if s.markedID != st.ID {
			return ErrStaleStage
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
	mu     sync.Mutex
	tables map[string]Table
	rows   map[string][]Value
	ledger map[string]bool
	places map[string]string // positions, by shard
	marks  map[string]string
	dead   map[string]DeadLetter // by an id made from the batch and the record
	fence  Fence
	reads  int // of the catalogue
	takes  int
}

func newBase(tables ...Table) *base {
	b := &base{tables: map[string]Table{}, rows: map[string][]Value{}, ledger: map[string]bool{}, places: map[string]string{}, marks: map[string]string{}, dead: map[string]DeadLetter{}}
	for _, t := range tables {
		b.tables[t.Name] = t
	}
	return b
}

// fakeSink is one node's connection to a base.
type fakeSink struct {
	*base
	*faults
}

func (s *fakeSink) Table(_ context.Context, name string) (t Table, err error) {
	err = s.around("table", func() error {
		s.base.mu.Lock()
		defer s.base.mu.Unlock()
		s.reads++
		var ok bool
		if t, ok = s.tables[name]; !ok {
			return ErrNoTable
		}
		return nil
	})
	return t, err
}

func (s *fakeSink) TakeOver(_ context.Context, f Fence) error {
	return s.transient(s.around("take over", func() error {
		s.base.mu.Lock()
		defer s.base.mu.Unlock()
		s.takes++
		if s.fence.Epoch > f.Epoch || s.fence.Epoch == f.Epoch && s.fence.Owner != f.Owner {
			return &FencedError{Job: f.Job, Epoch: s.fence.Epoch, Owner: s.fence.Owner}
		}
		s.fence = f
		return nil
	}))
}

func (s *fakeSink) Positions(_ context.Context, f Fence, shards []string) ([]string, error) {
	return s.recorded("positions", f, s.places, shards)
}

func (s *fakeSink) Marks(_ context.Context, f Fence, names []string) ([]string, error) {
	return s.recorded("marks", f, s.marks, names)
}

func (s *fakeSink) recorded(call string, f Fence, from map[string]string, names []string) (found []string, err error) {
	err = s.around(call, func() error {
		s.base.mu.Lock()
		defer s.base.mu.Unlock()
		if s.fence.Epoch != f.Epoch || s.fence.Owner != f.Owner {
			return &FencedError{Job: f.Job, Epoch: s.fence.Epoch, Owner: s.fence.Owner}
		}
		for _, name := range names {
			found = append(found, from[name])
		}
		return nil
	})
	return found, s.transient(err)
}

func (s *fakeSink) Apply(_ context.Context, f Fence, p *Plan, b Batch) (out Outcome, err error) {
	err = s.around("apply", func() error {
		s.base.mu.Lock()
		defer s.base.mu.Unlock()
		if s.fence.Epoch != f.Epoch || s.fence.Owner != f.Owner {
			return &FencedError{Job: f.Job, Epoch: s.fence.Epoch, Owner: s.fence.Owner}
		}
		if b.Shard == "" {
			return errors.New("a batch does not say of which shard it is")
		}
		entry := fmt.Sprint(b.ID, "/", b.Part)
		if b.Part >= 0 && s.ledger[entry] {
			return nil
		}
		if m := b.Move; m != nil && s.places[b.Shard] == m.To {
			return nil
		} else if m != nil && s.places[b.Shard] != m.From {
			return ErrMoved
		} else if m != nil {
			s.places[b.Shard] = m.To
		}
		for _, m := range b.Marks {
			s.marks[m.Name] = m.Value
		}
		for i, row := range b.Rows {
			if i > 0 && !less(p, b.Rows[i-1], row) {
				return fmt.Errorf("row %d of batch %s is out of order or twice there", i, b.ID)
			}
			s.write(p, row)
		}
		for i, d := range b.Dead {
			s.dead[fmt.Sprint(entry, "/", i, d.Record)] = d
		}
		if b.Part >= 0 {
			s.ledger[entry] = true
		}
		out = Outcome{Applied: true, Rows: int64(len(b.Rows)), Dead: b.Dead}
		return nil
	})
	return out, s.transient(err)
}

func less(p *Plan, a, b Row) bool {
	for _, k := range p.Key {
		if c := compareValues(a.Values[k], b.Values[k]); c != 0 {
			return c < 0
		}
	}
	return false
}

func (s *fakeSink) write(p *Plan, row Row) {
	var key []string
	for _, k := range p.Key {
		key = append(key, show(row.Values[k]))
	}
	name := strings.Join(key, "/")
	if row.Delete {
		delete(s.rows, name)
		return
	}
	values := slices.Clone(row.Values)
	if old, ok := s.rows[name]; ok {
		for i, c := range p.Columns {
			if c.Op == OpAdd {
				values[i], _ = addValues(old[i], row.Values[i])
			}
		}
	}
	s.rows[name] = values
}

// transient turns a lost connection into what a sink says of it.
func (s *fakeSink) transient(err error) error {
	if errors.Is(err, errLost) {
		return fmt.Errorf("%w: %w", ErrTransient, err)
	}
	return err
}

// fakeLead is the leadership of one term.
type fakeLead struct {
	owner string
	mu    sync.Mutex
	epoch int64
	raise func(floor int64) (int64, error) // nil: the lock is ours and follows
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
