package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/google/go-cmp/cmp"

	"baton/internal/flush"
	"baton/internal/flush/flushtest"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/testsupport"
)

// rig is a Redis for one test, with a store that uses it and a producer's connection.
type rig struct {
	testsupport.Client
	redis *testsupport.Redis
	store *redisconn.Store
}

func newRig(t testing.TB, opts ...testsupport.RedisOption) *rig {
	t.Helper()
	r := testsupport.StartRedis(t, opts...)
	return &rig{Client: r.Client(t), redis: r, store: openStore(t, r.URL())}
}

func openStore(t testing.TB, url string) *redisconn.Store {
	t.Helper()
	return openAt(t, redisconn.Options{URL: url, ClientName: "baton-test"})
}

func openAt(t testing.TB, o redisconn.Options) *redisconn.Store {
	t.Helper()
	s, err := redisconn.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	w := &watch{}
	o.Dial = redistest.Dial(w.step)
	if w.store, err = redisconn.Open(o); err != nil {
		t.Fatal(err)
	}
	watches.Store(s, w)
	t.Cleanup(func() {
		watches.Delete(s)
		_ = errors.Join(s.Close(), w.store.Close())
	})
	return s
}

// loadScripts loads all scripts. So a test that loses a reply need not wait for NOSCRIPT first.
func (g *rig) loadScripts() {
	g.T.Helper()
	for _, dir := range []string{".", "staging"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.lua"))
		if err != nil || len(files) == 0 {
			g.T.Fatalf("%d scripts in %s, %v", len(files), dir, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				g.T.Fatal(err)
			}
			g.Do("SCRIPT", "LOAD", text)
		}
	}
}

func (g *rig) counters(o CountersOptions) *Counters {
	g.T.Helper()
	return countersOn(g.T, g.store, o)
}

func countersOn(t testing.TB, store *redisconn.Store, o CountersOptions) *Counters {
	t.Helper()
	preset(&o.Job, "views")
	preset(&o.Key, "views:3")
	if o.Inputs == nil {
		o.Inputs = []string{"$field", "$value"}
	}
	return made(t, NewCounters, store, o)
}

func (g *rig) hashes(o IndexedOptions) *Hashes {
	g.T.Helper()
	return hashesOn(g.T, g.store, o)
}

func hashesOn(t testing.TB, store *redisconn.Store, o IndexedOptions) *Hashes {
	t.Helper()
	preset(&o.Job, "users")
	preset(&o.Key, "user:<id>")
	preset(&o.Changed, "changed:user")
	preset(&o.RemoveEvery, 1) // at once
	if o.Inputs == nil {
		o.Inputs = []string{"id", "name", "n"}
	}
	return made(t, NewHashes, store, o)
}

// preset sets an option that is not set.
func preset[T comparable](option *T, value T) {
	var unset T
	if *option == unset {
		*option = value
	}
}

// made returns a source with options that must be valid.
func made[O, S any](t testing.TB, open func(*redisconn.Store, O) (S, error), store *redisconn.Store, o O) S {
	t.Helper()
	src, err := open(store, o)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// stageNow stages changes, and fails if there are none.
func stageNow(t testing.TB, src flush.Source, id string) flush.Stage {
	t.Helper()
	st, ok, err := src.Stage(t.Context(), id, "")
	if err != nil || !ok {
		t.Fatalf("stage %s: ok %v, %v", src.Name(), ok, err)
	}
	return st
}

// readAll reads a stage page by page.
func readAll(t testing.TB, src flush.Source, st flush.Stage) []flush.Page {
	t.Helper()
	var pages []flush.Page
	err := src.Read(t.Context(), st, func(p flush.Page) error {
		pages = append(pages, p)
		return nil
	})
	if err != nil {
		t.Fatalf("read %s: %v", src.Name(), err)
	}
	return pages
}

// database is the target of the sources. It has sums for sources with parts, and rows for sources with keys.
type database struct {
	*flushtest.Database
	ids   atomic.Int64
	moved sync.Map // the keys of the records that came with moves
}

func newDatabase() *database {
	return &database{Database: flushtest.NewDatabase(textTable("rows", "id", "name", "n"))}
}

// textTable returns a table whose columns hold any bytes; the first column is the key.
func textTable(name string, columns ...string) row.Table {
	t := row.Table{Name: name, Unique: [][]string{columns[:1]}}
	for i, c := range columns {
		t.Columns = append(t.Columns, row.Column{Name: c, Kind: row.KindBytes, Nullable: i > 0})
	}
	return t
}

// sumsTable returns a table of numbers by name.
func sumsTable() row.Table {
	t := textTable("counts", "name", "n")
	t.Columns[1].Kind, t.Columns[1].Bits = row.KindInteger, 64
	return t
}

// counts returns the sums, by their first input.
func (db *database) counts() map[string]int64 {
	counts := map[string]int64{}
	for name, text := range db.Rows("counts", "n") {
		counts[name], _ = strconv.ParseInt(text, 10, 64)
	}
	return counts
}

// rows returns all inputs, by the first one: see rowText.
func (db *database) rows() map[string]string {
	table, _ := db.Table(context.Background(), "rows")
	var columns []string
	for _, c := range table.Columns {
		columns = append(columns, c.Name)
	}
	return db.Rows("rows", columns...)
}

// putRow inserts a row that exists before a flush.
func (db *database) putRow(id string) {
	db.Put("rows", map[string]row.Value{"id": row.String(row.KindBytes, id)})
}

// dead returns the reasons of dead letters, by the record's key.
func (db *database) dead() map[string]string {
	reasons := map[string]string{}
	for _, letter := range db.Dead() {
		var record struct{ Key string }
		if err := json.Unmarshal([]byte(letter.Record), &record); err != nil {
			panic(err)
		}
		reasons[record.Key] = letter.Error
	}
	return reasons
}

// place returns how far the stream of these tests is flushed.
func (db *database) place() string { return db.Place("events", "events") }

// rowText formats a row: fields joined by "|", and "-" for a missing one.
func rowText(r row.Record) string {
	var texts []string
	for _, in := range r.Inputs {
		if in.OK {
			texts = append(texts, in.Text)
		} else {
			texts = append(texts, "-")
		}
	}
	return strings.Join(texts, "|")
}

// Apply writes one batch. It fails if a record comes twice with moves: the rows of such records have unique keys.
func (db *database) Apply(ctx context.Context, f flush.Fence, p *row.Plan, b flush.Batch) (flush.Outcome, error) {
	out, err := db.Database.Apply(ctx, f, p, b)
	if err != nil || !out.Applied || b.Move == nil {
		return out, err
	}
	for _, r := range b.Rows {
		if _, twice := db.moved.LoadOrStore(r.Record.Key, true); twice {
			return out, fmt.Errorf("record %s came twice", r.Record.Key)
		}
	}
	return out, nil
}

// config returns a job that flushes a source. It adds up the records of sources with parts, and writes the others as rows.
func (db *database) config(src flush.Source) (flush.Config, error) {
	cfg := flush.Config{NodeID: "n", Sink: db, NewSources: func([]string) ([]flush.Source, error) { return []flush.Source{src}, nil }}
	cfg.NewID = func() (string, error) { return fmt.Sprintf("batch-%d", db.ids.Add(1)), nil }
	var inputs []string
	sums, guarantee, op := true, row.ByLedger, "add"
	switch s := src.(type) {
	case *Counters:
		cfg.Job, inputs = s.Job, s.inputs
	case *PlainCounters:
		cfg.Job, inputs = s.Job, s.inputs
	case *Totals:
		cfg.Job, inputs, guarantee, op = s.job, s.inputs, row.ByMark, ""
	case *List:
		cfg.Job, inputs = s.Job, s.inputs
	case *Hashes:
		cfg.Job, inputs, sums = s.Job, s.rowsReader.(*rowReader).inputs, false
		cfg.OnMissing = mapping.MissingDelete
	case *Zset:
		cfg.Job, inputs, sums = s.Job, s.rowsReader.(*scores).inputs, false
		cfg.OnMissing = mapping.MissingDelete
	case *Stream:
		cfg.Job, inputs, sums = s.Job, s.inputs, false
		cfg.Inputs.Guarantee = row.ByPosition
	default:
		return cfg, fmt.Errorf("no table is made for %T", src)
	}
	cfg.Inputs.Names, cfg.Inputs.Fields = inputs[:1], true
	if _, ok := src.(*Zset); ok {
		cfg.Inputs.Names, cfg.Inputs.Fields = inputs, false
	}
	cfg.Mapping = mapping.Spec{Table: "rows", Key: inputs[:1], Columns: map[string]mapping.ColumnSpec{}}
	table := textTable("rows", inputs...)
	for _, name := range inputs {
		cfg.Mapping.Columns[name] = mapping.ColumnSpec{}
	}
	if sums {
		table = sumsTable()
		cfg.Inputs = row.Inputs{Names: inputs, Guarantee: guarantee}
		cfg.Mapping = mapping.Spec{Table: "counts", Key: []string{"name"}, Columns: map[string]mapping.ColumnSpec{
			"name": {From: inputs[0]}, "n": {From: inputs[1], Op: op},
		}}
	}
	db.SetTable(table)
	return cfg, nil
}

// leader is a term of its own, as the elector would grant it.
type leader struct{ epoch int64 }

func (l leader) Owner() string { return fmt.Sprint("owner-", l.epoch) }
func (l leader) Epoch() int64  { return l.epoch }
func (l leader) Raise(context.Context, int64) (int64, error) {
	return 0, errors.New("the lock is somebody else's")
}

// stepOfFlush is the prefix of a flush's own steps.
const stepOfFlush = "flush: "

// flush runs a job once, as a new process, and reports whether anything was staged. observe is called at the steps of the flush and of the
// source.
func (db *database) flush(ctx context.Context, src flush.Source, observe func(string) error) (more bool, err error) {
	cfg, err := db.config(src)
	if err != nil {
		return false, err
	}
	p, err := flush.New(flushtest.Observed(cfg, func(s flushtest.Step) error {
		more = more || s == flushtest.StepStaged
		if observe == nil {
			return nil
		}
		return observe(stepOfFlush + string(s))
	}))
	if err != nil {
		return false, err
	}
	// All processes have the same term, so no fence separates them. Only the ledger and the position protect the table from a deposed
	// leader.
	_, err = p.Run(ctx, leader{1})
	return more, err
}

// drain flushes until nothing is pending. A request of a run that crashed may reach Redis after the first look at the stage. Then the flush
// has to begin again, once.
func (db *database) drain(t testing.TB, src flush.Source) {
	t.Helper()
	late := false
	for range 100 {
		more, err := db.flush(t.Context(), src, nil)
		if errors.Is(err, flush.ErrStaleStage) && !late {
			late = true
			continue
		}
		if err != nil {
			t.Fatalf("flush %s: %v", src.Name(), err)
		}
		if !more {
			return
		}
	}
	t.Fatalf("%s has something pending after 100 flushes", src.Name())
}

// difference is cmp.Diff. It first compares for equality, since cmp.Diff takes long for large equal values.
func difference(want, got any) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got)
}

func same[V comparable](t testing.TB, what string, want, got map[string]V) {
	t.Helper()
	if maps.Equal(want, got) {
		return // cmp finds this, too, but slowly
	}
	if diff := cmp.Diff(want, got); diff != "" {
		if len(diff) > 2000 {
			diff = diff[:2000] + "…"
		}
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// nothingLeft fails if a source's job has left a key of its own behind.
func (g *rig) nothingLeft() {
	g.T.Helper()
	keys, err := redis.Strings(g.Do("KEYS", "*:baton:*"), nil)
	if err != nil || len(keys) > 0 {
		g.T.Errorf("keys left behind: %q, %v", keys, err)
	}
}
