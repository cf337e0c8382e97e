package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"baton/internal/flush"
)

// scanTable is a table that a scan's pipeline writes to: a flush.StaleFinder that
// keeps the promises of one, in memory.
type scanTable struct {
	table flush.Table

	mu      sync.Mutex
	fence   flush.Fence
	rows    map[string]map[string]string // by key, then by column; no entry is NULL
	key     []string
	dead    []flush.DeadLetter
	deletes int
}

// newScanTable makes a table of texts; the generation is in gen.
func newScanTable(key string, columns ...string) *scanTable {
	t := &scanTable{rows: map[string]map[string]string{}, key: strings.Fields(key)}
	t.table = flush.Table{Name: "rows", Unique: [][]string{t.key}, Columns: []flush.Column{{Name: "gen", Kind: flush.KindInteger, Bits: 64, Nullable: true}}}
	for _, name := range append(t.key, columns...) {
		t.table.Columns = append(t.table.Columns, flush.Column{Name: name, Kind: flush.KindText, Nullable: !slices.Contains(t.key, name)})
	}
	return t
}

func (t *scanTable) Table(context.Context, string) (flush.Table, error) { return t.table, nil }

func (t *scanTable) TakeOver(_ context.Context, f flush.Fence) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fence.Epoch > f.Epoch {
		return &flush.FencedError{Job: f.Job, Epoch: t.fence.Epoch}
	}
	t.fence = f
	return nil
}

func (t *scanTable) Positions(context.Context, flush.Fence, []string) ([]string, error) {
	return nil, nil
}

func (t *scanTable) Marks(context.Context, flush.Fence, []string) ([]string, error) {
	return nil, nil
}

func (t *scanTable) Apply(_ context.Context, f flush.Fence, p *flush.Plan, b flush.Batch) (flush.Outcome, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fence != f {
		return flush.Outcome{}, &flush.FencedError{Job: f.Job, Epoch: t.fence.Epoch}
	}
	t.dead = append(t.dead, b.Dead...)
	for _, row := range b.Rows {
		values := map[string]string{}
		for i, v := range row.Values {
			if !v.IsNull() {
				values[p.Columns[i].Name] = valueText(v)
			}
		}
		key := t.keyOf(values)
		old, there := t.rows[key]
		if !row.Delete {
			t.rows[key] = values
			continue
		}
		for _, k := range p.Key { // the row must be the very one
			name := p.Columns[k].Name
			there = there && old[name] == values[name]
		}
		if there {
			delete(t.rows, key)
			t.deletes++
		}
	}
	return flush.Outcome{Applied: true, Rows: int64(len(b.Rows)), Dead: b.Dead}, nil
}

func valueText(v flush.Value) string {
	if v.Kind() == flush.KindInteger {
		return strconv.FormatInt(v.Int(), 10)
	}
	return v.Text()
}

func (t *scanTable) keyOf(values map[string]string) string {
	var parts []string
	for _, name := range t.key {
		parts = append(parts, values[name])
	}
	return strings.Join(parts, "|")
}

func (t *scanTable) CountStale(_ context.Context, _ *flush.Plan, current int64) (stale, all int64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, row := range t.rows {
		if n, _ := strconv.ParseInt(row["gen"], 10, 64); n > 0 {
			all++
			if n != current {
				stale++
			}
		}
	}
	return stale, all, nil
}

func (t *scanTable) StaleRows(_ context.Context, p *flush.Plan, current int64, behind []flush.Value, limit int) ([][]string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var after []string
	for _, v := range behind {
		after = append(after, valueText(v))
	}
	var found [][]string
	for _, row := range t.rows {
		n, _ := strconv.ParseInt(row["gen"], 10, 64)
		texts := make([]string, len(p.Columns))
		for i, c := range p.Columns {
			texts[i] = row[c.Name]
		}
		if n > 0 && n != current && (after == nil || slices.Compare(texts[:len(texts)-1], after) > 0) {
			found = append(found, texts)
		}
	}
	slices.SortFunc(found, slices.Compare)
	return found[:min(limit, len(found))], nil
}

// texts are the rows without their generations: columns by "|", a NULL as "-".
func (t *scanTable) texts() map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[string]string{}
	for key, row := range t.rows {
		var texts []string
		for _, c := range t.table.Columns[1+len(t.key):] {
			text, ok := row[c.Name]
			if !ok {
				text = "-"
			}
			texts = append(texts, text)
		}
		out[key] = strings.Join(texts, "|")
	}
	return out
}

// scanTerm is a leadership.
type scanTerm int64

func (t scanTerm) Owner() string { return fmt.Sprint("owner", int64(t)) }
func (t scanTerm) Epoch() int64  { return int64(t) }
func (t scanTerm) Raise(context.Context, int64) (int64, error) {
	return 0, fmt.Errorf("the lock is somebody else's")
}

// scanJob is a job that flushes a scan into a scanTable and sweeps.
type scanJob struct {
	store   *Store
	table   *scanTable
	options ScanOptions
	columns map[string]flush.ColumnSpec
	maxPct  int
	observe func(string) error
	notes   []string
	epoch   int64
	ids     int
}

func (j *scanJob) pipeline() (*flush.Pipeline, error) {
	o := j.options
	o.Job = "scan"
	o.Value = cmp.Or(o.Value, "hash")
	o.Observe = j.observe
	inputs, err := ScanInputs(o.Key, o.Value)
	if err != nil {
		return nil, err
	}
	cfg := flush.Config{
		Job: "scan", NodeID: "n", Sink: j.table, Inputs: inputs, Lanes: max(1, o.Lanes), OnMissing: flush.MissingIgnore,
		Mapping:  flush.MappingSpec{Table: "rows", Key: j.table.key, Generation: "gen", Columns: maps.Clone(j.columns)},
		Vanished: flush.VanishedDelete, MaxPct: cmp.Or(j.maxPct, 100),
		NewID:  func() (string, error) { j.ids++; return fmt.Sprint("pass", j.ids), nil },
		OnNote: func(text string) { j.notes = append(j.notes, text) },
		NewSources: func(in []string) ([]flush.Source, error) {
			o := o
			o.Inputs = in
			s, err := NewScan(j.store, o)
			return []flush.Source{s}, err
		},
	}
	if j.observe != nil {
		cfg.Observe = func(s flush.Step) error { return j.observe(string(s)) }
	}
	return flush.New(cfg)
}

// run makes one pass, as a process and a term of its own.
func (j *scanJob) run(ctx context.Context) error {
	p, err := j.pipeline()
	if err != nil {
		return err
	}
	j.epoch++
	_, err = p.Run(ctx, scanTerm(j.epoch))
	return err
}

// must makes one pass that has nothing to complain of.
func (j *scanJob) must(t testing.TB) {
	t.Helper()
	j.notes = nil
	if err := j.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(j.notes) > 0 {
		t.Errorf("notes: %q", j.notes)
	}
}

// at calls do at the first passing of a step.
func at(step string, do func()) func(string) error {
	var once sync.Once
	return func(s string) error {
		if s == step {
			once.Do(do)
		}
		return nil
	}
}

func scanOn(t testing.TB, store *Store, o ScanOptions) *Scan {
	t.Helper()
	o.Job = "scan"
	s, err := NewScan(store, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
