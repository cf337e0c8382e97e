package source

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"baton/internal/flush"
	"baton/internal/flush/flushtest"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
	"baton/internal/redisconn"
)

// scanTable is the table of a scan's pipeline. It counts deleted rows.
type scanTable struct {
	*flushtest.Database
	key, columns []string
	applying     sync.Mutex // lanes write at the same time
	deletes      int
	kept         []string // the reason and id of each row that a batch asked to keep
}

// newScanTable returns a table of texts; gen is the generation.
func newScanTable(key string, columns ...string) *scanTable {
	t := &scanTable{key: strings.Fields(key), columns: columns}
	table := row.Table{Name: "rows", Unique: [][]string{t.key},
		Columns: []row.Column{{Name: "gen", Kind: row.KindInteger, Bits: 64, Nullable: true}}}
	for _, name := range append(t.key, columns...) {
		table.Columns = append(table.Columns, row.Column{Name: name, Kind: row.KindText, Nullable: !slices.Contains(t.key, name)})
	}
	t.Database = flushtest.NewDatabase(table)
	return t
}

func (t *scanTable) Apply(ctx context.Context, f flush.Fence, p *row.Plan, b flush.Batch) (flush.Outcome, error) {
	t.applying.Lock()
	defer t.applying.Unlock()
	before := t.Count("rows")
	for _, r := range b.Rows {
		why := b.Keep.Why
		if r.Adopted {
			why = flush.WhyAdopted
		}
		if b.Keep.For > 0 && (r.Delete || r.Adopted) {
			t.kept = append(t.kept, fmt.Sprintf("%s %s %v", why, r.Values[p.Key[0]].Text(), b.Keep.For))
		}
	}
	out, err := t.Database.Apply(ctx, f, p, b)
	t.deletes += max(0, before-t.Count("rows"))
	return out, err
}

// put inserts a row that no scan has written. The row has an id, and a v unless v is "".
func (t *scanTable) put(id, v string) {
	values := map[string]row.Value{"id": row.String(row.KindText, id)}
	if v != "" {
		values["v"] = row.String(row.KindText, v)
	}
	t.Put("rows", values)
}

// texts returns the rows without their generations: columns joined by "|", and "-" for NULL.
func (t *scanTable) texts() map[string]string { return t.Rows("rows", t.columns...) }

// scanJob is a job that flushes a scan into a scanTable and sweeps.
type scanJob struct {
	store   *redisconn.Store
	table   *scanTable
	options ScanOptions
	columns map[string]mapping.ColumnSpec
	maxPct  int
	observe func(string) error
	notes   []string
	name    string // default: scan
	adopt   flush.Adopt
	waits   flush.Unaccepted
	without bool // it has no generation, so rows of vanished keys stay
	epoch   int64
	ids     int
}

func (j *scanJob) pipeline() (*flush.Pipeline, error) {
	o := j.options
	o.Job = "scan"
	o.Value = cmp.Or(o.Value, "hash")
	store := watched(j.store, j.observe)
	inputs, err := ScanInputs(o.Key, o.Value)
	if err != nil {
		return nil, err
	}
	cfg := flush.Config{
		Job: cmp.Or(j.name, "scan"), NodeID: "n", Sink: j.table, Inputs: inputs, Lanes: max(1, o.Lanes),
		Mapping: mapping.Spec{Table: "rows", Key: j.table.key, Generation: "gen", Columns: maps.Clone(j.columns)},
		Policy:  flush.Policy{VanishedPct: cmp.Or(j.maxPct, 100)},
		NewID:   func() (string, error) { j.ids++; return fmt.Sprint("pass", j.ids), nil },
		OnNote:  func(text string) { j.notes = append(j.notes, text) },
		NewSources: func(in []string) ([]flush.Source, error) {
			o := o
			o.Inputs = in
			s, err := NewScan(store, o)
			return []flush.Source{s}, err
		},
	}
	cfg.Adopt = j.adopt
	if cfg.Adopt.Differ != nil {
		cfg.Adopt.OnUnaccepted = func(w flush.Unaccepted) { j.waits = w }
	}
	if j.without {
		cfg.Mapping.Generation, cfg.VanishedPct = "", 0
	}
	if j.observe != nil {
		cfg = flushtest.Observed(cfg, func(s flushtest.Step) error { return j.observe(string(s)) })
	}
	return flush.New(cfg)
}

// run makes one pass, as a process with its own term.
func (j *scanJob) run(ctx context.Context) error {
	p, err := j.pipeline()
	if err != nil {
		return err
	}
	j.epoch++
	_, err = p.Run(ctx, leader{j.epoch})
	return err
}

// must makes one pass, which must report no problem.
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

// at calls do when a step is passed for the first time.
func at(step string, do func()) func(string) error {
	var once sync.Once
	return func(s string) error {
		if s == step {
			once.Do(do)
		}
		return nil
	}
}

func scanOn(t testing.TB, store *redisconn.Store, o ScanOptions) *Scan {
	t.Helper()
	o.Job = "scan"
	return made(t, NewScan, store, o)
}
