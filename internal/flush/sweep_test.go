package flush_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"baton/internal/flush"
	"baton/internal/flush/flushtest"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
)

// scan is a job whose source finds keys. Its table has their ids, and for each row the pass that wrote it.
type scan struct {
	*flushtest.Script
	db         *base
	keys       []string // the keys that a pass finds
	missing    []string // the keys that a second search does not find; nil: it finds none
	generation int64    // of the pass
	missed     error
	recheckErr error
	asked      []string
	inputs     []string

	batches   []flush.Batch
	staleErrs []error // of the next calls of StaleRows
	limit     int     // the rows that StaleRows returns at once; 0: as many as it is asked for
	notes     []string
}

// newScan has rows with these generations by id; 0 means NULL.
func newScan(rows map[string]int64) *scan {
	s := &scan{Script: flushtest.NewScript("k:<id>"), generation: 10, db: newBase(row.Table{
		Name: "rows", Unique: [][]string{{"id"}}, Columns: []row.Column{
			{Name: "gen", Kind: row.KindInteger, Bits: 64, Nullable: true}, {Name: "id", Kind: row.KindInteger, Bits: 64},
		},
	})}
	for id, generation := range rows {
		s.put(id, generation)
	}
	return s
}

func (s *scan) put(id string, generation int64) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		panic(err)
	}
	values := map[string]row.Value{"id": row.Integer(n)}
	if generation > 0 {
		values["gen"] = row.Integer(generation)
	}
	s.db.Put("rows", values)
}

// Stage begins the next pass, which finds the keys.
func (s *scan) Stage(_ context.Context, id, _ string) (flush.Stage, bool, error) {
	s.generation++
	page := flush.Page{Part: -1}
	for _, key := range s.keys {
		page.Records = append(page.Records, recordFrom(s.inputs, key,
			map[string]string{"id": key, row.InputGeneration: strconv.FormatInt(s.generation, 10)}))
	}
	s.SetPages(page)
	return flush.Stage{ID: id}, true, nil
}

func (s *scan) Finds([]string) error                              { return nil }
func (s *scan) Pass(flush.Stage) (generation int64, missed error) { return s.generation, s.missed }

func (s *scan) StillMissing(_ context.Context, records []row.Record) (missing []row.Record, err error) {
	for _, r := range records {
		id := r.Inputs[slices.Index(s.inputs, "id")].Text
		s.asked = append(s.asked, id)
		if s.missing == nil || slices.Contains(s.missing, id) {
			missing = append(missing, r)
		}
	}
	return missing, s.recheckErr
}

// scanSink makes StaleRows fail, or return fewer rows than asked for.
type scanSink struct {
	watchedSink
	scan *scan
}

func (s *scanSink) StaleRows(ctx context.Context, p *row.Plan, current int64, behind []row.Value, limit int) ([][]string, error) {
	if errs := s.scan.staleErrs; len(errs) > 0 {
		s.scan.staleErrs = errs[1:]
		return nil, errs[0]
	}
	if s.scan.limit > 0 {
		limit = s.scan.limit
	}
	return s.watchedSink.StaleRows(ctx, p, current, behind, limit)
}

func (s *scan) config() flush.Config {
	return flush.Config{
		Job: "job", NodeID: "node", Policy: flush.Policy{VanishedPct: 100},
		Sink:    &scanSink{watchedSink{fakeSink: fakeSink{base: s.db}, applied: &s.batches}, s},
		Inputs:  row.Inputs{Names: []string{"id", row.InputGeneration}, Guarantee: row.ByPass},
		Mapping: mapping.Spec{Table: "rows", Key: []string{"id"}, Generation: "gen", Columns: map[string]mapping.ColumnSpec{"id": {}}},
		NewSources: func(inputs []string) ([]flush.Source, error) {
			s.inputs = inputs
			return []flush.Source{s}, nil
		},
		NewID:  func() (string, error) { return "pass", nil },
		OnNote: func(text string) { s.notes = append(s.notes, text) },
	}
}

func (s *scan) run(t *testing.T, cfg flush.Config) (flush.Result, error) {
	t.Helper()
	return mustNew(t, cfg).Run(t.Context(), &fakeLead{owner: "o", epoch: 1})
}

// ids returns the ids of the table's rows.
func (s *scan) ids() string {
	return strings.Join(slices.Sorted(maps.Keys(s.db.Rows("rows", "id"))), " ")
}

func TestASweepDeletesWhatIsMissingStill(t *testing.T) {
	for _, limit := range []int{1, 2, 100} {
		h := newScan(map[string]int64{"3": 5, "4": 0, "5": 7, "6": 5, "7": 5})
		h.keys, h.limit, h.missing = []string{"1", "2"}, limit, []string{"3", "5", "7"}
		result, err := h.run(t, h.config())
		if err != nil || h.ids() != "1 2 4 6" || len(h.notes) > 0 {
			t.Errorf("%d at a time: rows %s, %v, notes %q", limit, h.ids(), err, h.notes)
		}
		if asked := strings.Join(h.asked, " "); asked != "3 5 6 7" {
			t.Errorf("%d at a time: looked again for %s", limit, asked)
		}
		if result.Rows != 5 {
			t.Errorf("%+v", result)
		}
		for _, b := range h.batches[1:] {
			if b.Part != -1 || b.ID != "k:<id>" || b.Shard != "k:<id>" || !b.Rows[0].Delete || !b.Rows[0].Record.Gone {
				t.Errorf("batch %+v", b)
			}
		}
	}
}

func TestARowThatIsWrittenAgainBehindTheSweepStays(t *testing.T) {
	h := newScan(map[string]int64{"3": 5, "4": 5})
	cfg := h.config()
	cfg = observed(cfg, func(s string) error {
		if s == "rechecked" {
			h.put("3", 12)
		}
		return nil
	})
	if _, err := h.run(t, cfg); err != nil || h.ids() != "3" {
		t.Errorf("rows %s, %v", h.ids(), err)
	}
}

func TestASweepIsLeftOutWhereItCouldBeWrong(t *testing.T) {
	rows := func() map[string]int64 { return map[string]int64{"3": 5, "4": 5} }
	h := newScan(rows())
	h.keys, h.missed = []string{"1"}, errors.New("slots moved")
	if _, err := h.run(t, h.config()); err != nil || h.ids() != "1 3 4" {
		t.Errorf("rows %s, %v", h.ids(), err)
	}
	if len(h.notes) != 1 || !strings.Contains(h.notes[0], "k:<id>") || !strings.Contains(h.notes[0], "slots moved") {
		t.Errorf("notes: %q", h.notes)
	}
	h = newScan(rows())
	h.keys = []string{"1"}
	left := h.config()
	left.VanishedPct = 0
	if _, err := h.run(t, left); err != nil || h.ids() != "1 3 4" || len(h.asked) > 0 {
		t.Errorf("of a job that leaves them: rows %s, %v", h.ids(), err)
	}
	h.recheckErr = errors.New("connection lost")
	if _, err := h.run(t, h.config()); !errors.Is(err, h.recheckErr) || h.ids() != "1 3 4" {
		t.Errorf("rows %s, %v", h.ids(), err)
	}
}

func TestTheShareOfVanishedRowsIsLimited(t *testing.T) {
	for _, c := range []struct {
		stale, fresh, maxPct int
		allowed              bool
	}{
		{1, 9, 10, true}, {1, 8, 10, false}, {1, 0, 99, false}, {1, 0, 100, true}, {0, 0, 10, true}, {50, 50, 50, true},
		{51, 50, 50, false},
	} {
		h := newScan(map[string]int64{"999": 0})
		for i := range c.fresh {
			h.keys = append(h.keys, strconv.Itoa(i))
		}
		for i := range c.stale {
			h.put(strconv.Itoa(1000+i), 3)
		}
		cfg := h.config()
		cfg.VanishedPct = c.maxPct
		_, err := h.run(t, cfg)
		left := h.db.Count("rows") - c.fresh - 1
		if c.allowed && (err != nil || left != 0) || !c.allowed && (!errors.Is(err, flush.ErrTooManyVanished) || left != c.stale) {
			t.Errorf("%+v: %d stale rows are left, %v", c, left, err)
		}
	}
}

func TestASweepAsksAgainAfterALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that retries need not really wait
		h := newScan(map[string]int64{"3": 5})
		h.staleErrs = []error{flush.ErrTransient, flush.ErrTransient}
		if _, err := h.run(t, h.config()); err != nil || h.ids() != "" {
			t.Errorf("rows %s, %v", h.ids(), err)
		}
	})
}

func TestASweepEndsWithTheLeadership(t *testing.T) {
	for _, step := range []string{"before-sweep", "stale-counted", "stale-read", "rechecked"} {
		h := newScan(map[string]int64{"3": 5, "4": 5})
		h.limit = 1
		ctx, cancel := context.WithCancelCause(t.Context())
		cfg := h.config()
		over := errors.New("leadership is over")
		cfg = observed(cfg, func(s string) error {
			if s == step {
				cancel(over)
			}
			return nil
		})
		_, err := mustNew(t, cfg).Run(ctx, &fakeLead{owner: "o", epoch: 1})
		if !errors.Is(err, over) || h.db.Count("rows") != 2 {
			t.Errorf("%s: rows %s, %v", step, h.ids(), err)
		}
	}
}

// The key must determine the record. Otherwise a row with a record could be deleted.
func TestASweepIsRefusedWhereARowDoesNotTellItsRecord(t *testing.T) {
	with := func(change func(c *flush.Config, t *row.Table)) error {
		table := row.Table{Name: "rows", Unique: [][]string{{"b", "a"}}, Columns: []row.Column{
			{Name: "a", Kind: row.KindText}, {Name: "b", Kind: row.KindInteger, Bits: 32}, {Name: "v", Kind: row.KindText, Nullable: true},
			{Name: "gen", Kind: row.KindInteger, Bits: 64, Nullable: true},
		}}
		h := newScan(nil)
		cfg := h.config()
		cfg.Inputs = row.Inputs{Names: []string{"a", "b", row.InputKey, row.InputMember, row.InputScore, row.InputValue,
			row.InputGeneration}, Fields: true}
		cfg.Mapping.Key, cfg.Mapping.Columns = []string{"a", "b"}, map[string]mapping.ColumnSpec{"a": {}, "b": {}, "v": {}}
		change(&cfg, &table)
		m, err := mapping.Compile(cfg.Mapping, table, cfg.Inputs)
		if err != nil {
			return err
		}
		p := mustNew(t, cfg)
		sources, err := cfg.NewSources(nil)
		if err != nil {
			return err
		}
		v, err := p.CompileSweep(m, sources)
		if err == nil && (v.Plan().Columns[0].Name != "b" || v.Plan().Columns[2].Name != "gen") {
			t.Errorf("the columns are not in the order of the index: %+v", v.Plan().Columns)
		}
		return err
	}
	spec := func(column, from, as string) func(*flush.Config, *row.Table) {
		return func(c *flush.Config, _ *row.Table) {
			c.Mapping.Columns[column] = mapping.ColumnSpec{From: from, Type: as}
		}
	}
	kind := func(k row.Kind) func(*flush.Config, *row.Table) {
		return func(_ *flush.Config, t *row.Table) { t.Columns[0].Kind = k }
	}
	for what, change := range map[string]func(*flush.Config, *row.Table){
		"captures": func(*flush.Config, *row.Table) {}, "the key": spec("a", row.InputKey, ""), "a member": spec("a", row.InputMember, ""),
		"bytes": kind(row.KindBytes), "uuid": kind(row.KindUUID), "a text as uuid in a text": spec("a", "a", "text"),
	} {
		if err := with(change); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, c := range []struct {
		what, says string
		change     func(*flush.Config, *row.Table)
	}{
		{"a field in the key", `"a" of ` + "`key`" + ` is made from name`, spec("a", "name", "")},
		{"a score in the key", "does not identify a record", spec("a", row.InputScore, "")},
		{"a value in the key", "does not identify a record", spec("a", row.InputValue, "")},
		{"a time in the key", "cannot tell from its value the text in Redis", kind(row.KindTimestamp)},
		{"a fraction in the key", "cannot tell from its value the text in Redis", kind(row.KindNumeric)},
		{"a truth in the key", "cannot tell from its value the text in Redis", spec("b", "b", "boolean")},
		{"no generation", "needs `generation`", func(c *flush.Config, _ *row.Table) { c.Mapping.Generation = "" }},
		{"no such generation", `"none" does not exist`, func(c *flush.Config, _ *row.Table) { c.Mapping.Generation = "none" }},
		{"a narrow generation", "64 bits", func(_ *flush.Config, t *row.Table) { t.Columns[3].Bits = 32 }},
		{"a generation of text", "64 bits", func(_ *flush.Config, t *row.Table) { t.Columns[3].Kind = row.KindText }},
		{"a generation in the key", "cannot be part of the key", func(c *flush.Config, _ *row.Table) { c.Mapping.Generation = "b" }},
		{"a generation from elsewhere", "gives it another value", func(c *flush.Config,
			_ *row.Table) {
			c.Mapping.Columns["gen"] = mapping.ColumnSpec{From: "x"}
		}},
		{"no scan", "only a source of type scan", func(c *flush.Config, _ *row.Table) { c.Inputs.Names = []string{"a", "b"} }},
		{"another source", "needs a source of type scan or capture", func(c *flush.Config, _ *row.Table) {
			c.NewSources = func([]string) ([]flush.Source, error) { return []flush.Source{&fakeHashes{}}, nil }
		}},
		{"a sink that cannot", "needs a database", func(c *flush.Config, _ *row.Table) { c.Sink = struct{ flush.Sink }{} }},
	} {
		if err := with(c.change); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want an error that says %q", c.what, err, c.says)
		}
	}
}

func TestTooManyVanishedRowsAreCounted(t *testing.T) {
	if text := fmt.Sprint((&flush.TooManyVanishedError{Source: "s", Table: "t", Stale: 3, All: 4, MaxPct: 10})); !strings.Contains(text,
		"3 of 4") {
		t.Error(text)
	}
}
