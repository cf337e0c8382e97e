package flush_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"baton/internal/flush"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
)

// hall is a Redis with keys, and a table of their ids with generations.
type hall struct {
	keys       []string         // what a pass finds
	missing    []string         // what is not there when it is looked for again; nil: all that is asked for
	rows       map[string]int64 // generation by id; 0 is NULL
	generation int64
	missed     error
	recheckErr error
	staleErrs  []error // of the next calls of StaleRows
	notes      []string
	asked      []string
	batches    []flush.Batch
	limit      int // rows that StaleRows gives at once
}

func (h *hall) Name() string { return "k:<id>" }
func (h *hall) Stage(_ context.Context, id, _ string) (flush.Stage, bool, error) {
	h.generation++
	return flush.Stage{ID: id}, true, nil
}
func (h *hall) Read(_ context.Context, _ flush.Stage, yield func(flush.Page) error) error {
	p := flush.Page{Part: -1}
	for _, key := range h.keys {
		p.Records = append(p.Records, row.Record{Key: key, Inputs: []row.Raw{{Text: key, OK: true},
			{Text: strconv.FormatInt(h.generation, 10), OK: true}}})
	}
	return yield(p)
}
func (h *hall) Finds([]string) error                                               { return nil }
func (h *hall) Pass(flush.Stage) (generation int64, missed error)                  { return h.generation, h.missed }
func (h *hall) Table(context.Context, string) (row.Table, error)                   { return hallTable, nil }
func (h *hall) TakeOver(context.Context, flush.Fence) error                        { return nil }
func (h *hall) Positions(context.Context, flush.Fence, []string) ([]string, error) { return nil, nil }

func (h *hall) Marks(context.Context, flush.Fence, []string) ([]string, error) { return nil, nil }

func (h *hall) StillMissing(_ context.Context, records []row.Record) (missing []row.Record, err error) {
	for _, r := range records {
		id := r.Inputs[0].Text
		h.asked = append(h.asked, id)
		if h.missing == nil || slices.Contains(h.missing, id) {
			missing = append(missing, r)
		}
	}
	return missing, h.recheckErr
}

var hallTable = row.Table{Name: "rows", Unique: [][]string{{"id"}}, Columns: []row.Column{
	{Name: "gen", Kind: row.KindInteger, Bits: 64, Nullable: true}, {Name: "id", Kind: row.KindInteger, Bits: 64},
}}

func (h *hall) Apply(_ context.Context, _ flush.Fence, p *row.Plan, b flush.Batch) (flush.Outcome, error) {
	h.batches = append(h.batches, b)
	at := func(name string) int {
		return slices.IndexFunc(p.Columns, func(c row.PlanColumn) bool { return c.Name == name })
	}
	for _, row := range b.Rows {
		id, gen := strconv.FormatInt(row.Values[at("id")].Int(), 10), row.Values[at("gen")].Int()
		switch {
		case !row.Delete:
			h.rows[id] = gen
		case h.rows[id] == gen || !slices.Contains(p.Key, at("gen")):
			delete(h.rows, id)
		}
	}
	return flush.Outcome{Applied: true, Rows: int64(len(b.Rows))}, nil
}

func (h *hall) CountStale(_ context.Context, _ *row.Plan, current int64) (stale, all int64, err error) {
	for _, gen := range h.rows {
		if gen > 0 {
			all++
		}
		if gen > 0 && gen != current {
			stale++
		}
	}
	return stale, all, nil
}

func (h *hall) StaleRows(_ context.Context, _ *row.Plan, current int64, behind []row.Value, limit int) (found [][]string, err error) {
	if len(h.staleErrs) > 0 {
		err, h.staleErrs = h.staleErrs[0], h.staleErrs[1:]
		return nil, err
	}
	for id, gen := range h.rows {
		n, _ := strconv.ParseInt(id, 10, 64)
		if gen > 0 && gen != current && (behind == nil || n > behind[0].Int()) {
			found = append(found, []string{id, strconv.FormatInt(gen, 10)})
		}
	}
	slices.SortFunc(found, func(a, b []string) int {
		x, _ := strconv.Atoi(a[0])
		y, _ := strconv.Atoi(b[0])
		return x - y
	})
	if h.limit > 0 {
		limit = h.limit
	}
	return found[:min(limit, len(found))], nil
}

func (h *hall) config() flush.Config {
	return flush.Config{
		Job: "job", NodeID: "node", Sink: h, Policy: flush.Policy{VanishedPct: 100},
		Inputs:     row.Inputs{Names: []string{"id", row.InputGeneration}, Guarantee: row.ByPass},
		Mapping:    mapping.Spec{Table: "rows", Key: []string{"id"}, Generation: "gen", Columns: map[string]mapping.ColumnSpec{"id": {}}},
		NewSources: func([]string) ([]flush.Source, error) { return []flush.Source{fixedInputs{h}}, nil },
		NewID:      func() (string, error) { return "pass", nil },
		OnNote:     func(text string) { h.notes = append(h.notes, text) },
	}
}

// fixedInputs puts a hall's inputs, id and generation, into the order of the plan.
type fixedInputs struct{ *hall }

func (f fixedInputs) Read(ctx context.Context, s flush.Stage, yield func(flush.Page) error) error {
	return f.hall.Read(ctx, s, func(p flush.Page) error {
		for i := range p.Records {
			slices.Reverse(p.Records[i].Inputs) // gen comes first in the table
		}
		return yield(p)
	})
}

func (f fixedInputs) StillMissing(ctx context.Context, records []row.Record) ([]row.Record, error) {
	for i := range records {
		slices.Reverse(records[i].Inputs)
	}
	missing, err := f.hall.StillMissing(ctx, records)
	for i := range records {
		slices.Reverse(records[i].Inputs)
	}
	return missing, err
}

func (h *hall) run(t *testing.T, cfg flush.Config) (flush.Result, error) {
	t.Helper()
	return mustNew(t, cfg).Run(t.Context(), &fakeLead{owner: "o", epoch: 1})
}

func (h *hall) ids() string {
	var ids []string
	for id := range h.rows {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

func TestASweepDeletesWhatIsMissingStill(t *testing.T) {
	for _, limit := range []int{1, 2, 100} {
		h := &hall{keys: []string{"1", "2"}, rows: map[string]int64{"3": 5, "4": 0, "5": 7, "6": 5, "7": 5}, generation: 10, limit: limit,
			missing: []string{"3", "5", "7"}}
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
	h := &hall{rows: map[string]int64{"3": 5, "4": 5}, generation: 10}
	cfg := h.config()
	cfg = observed(cfg, func(s string) error {
		if s == "rechecked" {
			h.rows["3"] = 12
		}
		return nil
	})
	if _, err := h.run(t, cfg); err != nil || h.ids() != "3" {
		t.Errorf("rows %s, %v", h.ids(), err)
	}
}

func TestASweepIsLeftOutWhereItCouldBeWrong(t *testing.T) {
	rows := func() map[string]int64 { return map[string]int64{"3": 5, "4": 5} }
	h := &hall{keys: []string{"1"}, rows: rows(), generation: 10, missed: errors.New("slots moved")}
	if _, err := h.run(t, h.config()); err != nil || h.ids() != "1 3 4" {
		t.Errorf("rows %s, %v", h.ids(), err)
	}
	if len(h.notes) != 1 || !strings.Contains(h.notes[0], "k:<id>") || !strings.Contains(h.notes[0], "slots moved") {
		t.Errorf("notes: %q", h.notes)
	}
	h = &hall{keys: []string{"1"}, rows: rows(), generation: 10}
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
		h := &hall{rows: map[string]int64{"999": 0}, generation: 10}
		for i := range c.fresh {
			h.keys = append(h.keys, strconv.Itoa(i))
		}
		for i := range c.stale {
			h.rows[strconv.Itoa(1000+i)] = 3
		}
		cfg := h.config()
		cfg.VanishedPct = c.maxPct
		_, err := h.run(t, cfg)
		left := len(h.rows) - c.fresh - 1
		if c.allowed && (err != nil || left != 0) || !c.allowed && (!errors.Is(err, flush.ErrTooManyVanished) || left != c.stale) {
			t.Errorf("%+v: %d stale rows are left, %v", c, left, err)
		}
	}
}

func TestASweepAsksAgainAfterALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // retries wait
		h := &hall{rows: map[string]int64{"3": 5}, generation: 10, staleErrs: []error{flush.ErrTransient, flush.ErrTransient}}
		if _, err := h.run(t, h.config()); err != nil || h.ids() != "" {
			t.Errorf("rows %s, %v", h.ids(), err)
		}
	})
}

func TestASweepEndsWithTheLeadership(t *testing.T) {
	for _, step := range []string{"before-sweep", "stale-counted", "stale-read", "rechecked"} {
		h := &hall{rows: map[string]int64{"3": 5, "4": 5}, generation: 10, limit: 1}
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
		if !errors.Is(err, over) || len(h.rows) != 2 {
			t.Errorf("%s: rows %s, %v", step, h.ids(), err)
		}
	}
}

// The key must tell the record, or a row that is alive could be deleted.
func TestASweepIsRefusedWhereARowDoesNotTellItsRecord(t *testing.T) {
	with := func(change func(c *flush.Config, t *row.Table)) error {
		table := row.Table{Name: "rows", Unique: [][]string{{"b", "a"}}, Columns: []row.Column{
			{Name: "a", Kind: row.KindText}, {Name: "b", Kind: row.KindInteger, Bits: 32}, {Name: "v", Kind: row.KindText, Nullable: true},
			{Name: "gen", Kind: row.KindInteger, Bits: 64, Nullable: true},
		}}
		h := &hall{}
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
		{"a score in the key", "no record can be looked for", spec("a", row.InputScore, "")},
		{"a value in the key", "no record can be looked for", spec("a", row.InputValue, "")},
		{"a time in the key", "the text in Redis cannot be told", kind(row.KindTimestamp)},
		{"a fraction in the key", "the text in Redis cannot be told", kind(row.KindNumeric)},
		{"a truth in the key", "the text in Redis cannot be told", spec("b", "b", "boolean")},
		{"no generation", "needs `generation`", func(c *flush.Config, _ *row.Table) { c.Mapping.Generation = "" }},
		{"no such generation", `"none" does not exist`, func(c *flush.Config, _ *row.Table) { c.Mapping.Generation = "none" }},
		{"a narrow generation", "64 bits", func(_ *flush.Config, t *row.Table) { t.Columns[3].Bits = 32 }},
		{"a generation of text", "64 bits", func(_ *flush.Config, t *row.Table) { t.Columns[3].Kind = row.KindText }},
		{"a generation in the key", "cannot be part of the key", func(c *flush.Config, _ *row.Table) { c.Mapping.Generation = "b" }},
		{"a generation from elsewhere", "something else", func(c *flush.Config,
			_ *row.Table) {
			c.Mapping.Columns["gen"] = mapping.ColumnSpec{From: "x"}
		}},
		{"no scan", "only a scan", func(c *flush.Config, _ *row.Table) { c.Inputs.Names = []string{"a", "b"} }},
		{"another source", "is for a scan", func(c *flush.Config, _ *row.Table) {
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
