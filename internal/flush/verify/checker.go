package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
)

// ErrNoMarks says that a source has no marks: each run of its job reads everything.
var ErrNoMarks = errors.New("every run of the job reads everything, so nothing has to be marked")

const (
	// tableRows is how many rows are searched for in the source at a time.
	tableRows = 1000
	// mostSuspects is the most differences that may wait for their second look.
	mostSuspects = 20_000
	// systematic: after a second look at that many differences, all of them lasting, the next ones count without another wait: an empty
	// table is no race.
	systematic = 5000
	// chunk is how many suspects are read at a time.
	chunk = 1000
	// longestWait is how long a difference may wait for its second look.
	longestWait = 10 * time.Second
	// tries is how often a difference is compared again before its record counts as moving.
	tries = 4
	// defaultPct is the share of the rows, in percent, that a repair may delete, unless the job sets another one.
	defaultPct = 10
	// examplesOf is how many examples of each kind there are, unless the options say otherwise.
	examplesOf = 5
)

// Options describe a comparison.
type Options struct {
	// Sample is the part of all keys that is compared, chosen by their hash; 0 or 1: all keys.
	Sample float64
	// Rate is the most keys and rows that are read a second, including those that are not compared; 0: no limit.
	Rate int
	// Repair: differences are marked, so that the flush writes their rows again. Everything is compared before the first mark is made,
	// and marks never delete more rows than that comparison found, or than the job allows.
	Repair bool
	// May, if set, fails if a repair must make no mark. extra: it would mark rows without a record.
	May func(ctx context.Context, extra bool) error
	// Examples is how many examples of each kind are kept. Default 5.
	Examples int
	// Flushed waits until a run of the flush has written everything that was in the source at a time; false: no run will end in a
	// reasonable time.
	Flushed func(ctx context.Context, since time.Time) (bool, error)
	// Progress, if set, is called after every few keys: a comparison that continues there repeats the part that was not settled. Its
	// error ends the comparison.
	Progress func(State) error
}

// Checker compares the records of a job with its table.
type Checker struct {
	options Options
	source  Source
	table   Table
	name    string // of the table
	m       *mapping.Mapping
	skipped []bool // columns of the plan that are not compared
	// vanished finds rows without a record; nil: such rows are not looked for.
	vanished *mapping.Vanished
	empties  bool // a row vanishes by NULL in all columns but its key
	maxPct   int  // the share of the rows that a repair may delete, in percent
	notes    []string
	pace     pace
}

// New matches a job with its table. The source is opened with the inputs that the mapping needs.
func New(ctx context.Context, c flush.Config, open func(inputs []string) (Source, error), o Options) (*Checker, error) {
	if o.Examples <= 0 {
		o.Examples = examplesOf
	}
	table, ok := c.Sink.(Table)
	if !ok {
		return nil, errors.New("this database cannot look rows up by their keys")
	}
	described, err := table.Table(ctx, c.Mapping.Table)
	if err != nil {
		return nil, fmt.Errorf("read the columns of table %q: %w", c.Mapping.Table, err)
	}
	m, err := mapping.Compile(c.Mapping, described, c.Inputs)
	if err != nil {
		return nil, err
	}
	plan := m.Plan()
	switch {
	case len(plan.Key) == 0:
		return nil, fmt.Errorf("table %q: without a `key` no row can be found", c.Mapping.Table)
	case m.Adds():
		return nil, fmt.Errorf("table %q: a column with `op: add` has a sum of the past, "+
			"which cannot be compared with the present values in Redis", c.Mapping.Table)
	}
	k := &Checker{options: o, table: table, name: c.Mapping.Table, m: m, skipped: make([]bool, len(plan.Columns)), pace: pace{rate: o.Rate}}
	k.maxPct = cmp.Or(c.Policy.VanishedPct, c.Policy.RepairPct, defaultPct)
	if k.source, err = open(m.Inputs()); err != nil {
		return nil, err
	}
	for i, column := range plan.Columns {
		k.skipped[i] = column.Name == c.Mapping.Generation
	}
	if kept := m.Kept(); len(kept) > 0 {
		k.notes = append(k.notes, fmt.Sprintf("columns %s were compared only where the record has a value: without one the row keeps "+
			"what it has, as the default is not constant or `missing: keep` says so", strings.Join(kept, ", ")))
	}
	k.prepareExtra(c.Policy)
	return k, nil
}

// prepareExtra finds out whether rows without a record can be searched for, and should be.
func (k *Checker) prepareExtra(p flush.Policy) {
	if p.VanishedPct == 0 && p.OnMissing != mapping.MissingDelete {
		k.notes = append(k.notes, "rows without a record were not searched for: the job keeps them")
		return
	}
	v, inputs, err := k.m.Vanished("")
	if err == nil {
		err = k.source.Finds(inputs)
	}
	if k.empties = p.OnMissing == mapping.MissingNull; k.empties && err == nil {
		err = v.Empties(k.m)
	}
	if err != nil {
		k.notes = append(k.notes, fmt.Sprintf("rows without a record were not searched for: %v", err))
		return
	}
	k.vanished = v
}

// Run compares, from the state of an earlier comparison on, until everything is compared; a repair then marks the differences. Beside an
// error it returns its state.
func (k *Checker) Run(ctx context.Context, from State) (State, error) {
	r := &comparison{Checker: k, State: from, kept: from, suspects: map[string]suspect{}}
	for _, note := range k.notes {
		r.Result.note(note)
	}
	if !r.Marking {
		if err := r.all(ctx); err != nil {
			return r.kept, err
		}
	}
	if k.options.Repair && r.Result.Differences() > 0 {
		if err := r.repairAll(ctx); err != nil {
			return r.kept, err
		}
	}
	r.Part = 1
	return r.State, nil
}

// all compares all records, and then all rows.
func (r *comparison) all(ctx context.Context) error {
	for !r.Table {
		missed, err := r.records(ctx)
		if err != nil {
			return err
		}
		if r.missed(missed) {
			r.again()
		}
	}
	if r.vanished == nil || r.Misspelled {
		return nil
	}
	return r.rows(ctx)
}

// comparison is one run of a checker.
type comparison struct {
	*Checker
	State
	// kept is the last state without suspects: a comparison that continues there counts no difference twice.
	kept     State
	suspects map[string]suspect // by the text of the row's key
	since    time.Time          // since when suspects wait
	unmoved  bool               // a wait for a run of the flush has ended without one
	surely   bool               // many differences got a second look, and all have lasted
}

// suspect is a row that differed when it was compared.
type suspect struct {
	key  string // in Redis
	kind Kind
	sum  uint64 // of the record that it was compared with
}

// keep notes the present state as one where a comparison can continue.
func (r *comparison) keep() {
	r.kept = r.State
	r.kept.Result.Examples, r.kept.Result.Notes = slices.Clip(r.Result.Examples), slices.Clip(r.Result.Notes)
}

// again starts at the first record.
func (r *comparison) again() {
	r.Table, r.Behind, r.Result.Marked, r.Marks = false, nil, 0, Result{}
	if !r.Marking {
		r.Result = Result{Notes: r.Result.Notes}
	}
	r.keep()
}

// found is the result that differences are counted in.
func (r *comparison) found() *Result {
	if r.Marking {
		return &r.Marks
	}
	return &r.Result
}

// waited reports whether suspects have waited long for their second look, so that a comparison which continues elsewhere does not repeat
// too much.
func (r *comparison) waited(some int) bool {
	if some == 0 {
		r.since = time.Time{}
		return false
	}
	if r.since.IsZero() {
		r.since = time.Now()
	}
	return time.Since(r.since) > longestWait
}

// records compares all records with their rows. It returns the reason why some may have been missed.
func (r *comparison) records(ctx context.Context) (missed, err error) {
	share := 1.0
	if r.vanished != nil {
		share = 0.5
	}
	for place := r.Place; ; {
		some, err := r.source.Keys(ctx, place)
		if err != nil {
			return nil, err
		}
		for _, key := range some.Keys {
			named := r.source.Named(key)
			r.spells(&named)
		}
		looked := max(some.Looked, len(some.Keys))
		err = r.source.Read(ctx, r.sampled(some.Keys), func(records []row.Record) error { return r.first(ctx, records) })
		if err != nil {
			return nil, err
		}
		if place = some.Next; place == "" || len(r.suspects) >= mostSuspects/2 || r.waited(len(r.suspects)) {
			if err := r.settle(ctx); err != nil {
				return nil, err
			}
		}
		if len(r.suspects) == 0 {
			r.Place, r.Table = place, place == ""
			r.keep()
		}
		if err := r.progress(some.Part * share); err != nil || place == "" {
			return some.Missed, err
		}
		if err := r.pace.rest(ctx, looked); err != nil {
			return nil, err
		}
	}
}

// first compares records for the first time.
func (r *comparison) first(ctx context.Context, records []row.Record) error {
	for i := range records {
		if !records[i].Gone {
			r.found().Records++
			r.spells(&records[i])
		}
	}
	err := r.compare(ctx, records, func(f finding) { r.suspects[f.text] = f.suspect })
	if err == nil && len(r.suspects) >= mostSuspects { // one large set can have as many
		err = r.settle(ctx)
	}
	return err
}

// spells notes a record whose row spells its key in another way: a search by the row would not find it, and a row without a record is
// deleted.
func (r *comparison) spells(record *row.Record) {
	if r.vanished == nil || r.Misspelled || r.vanished.Spells(record) {
		return
	}
	r.Misspelled = true
	r.Result.note(fmt.Sprintf("rows without a record were not searched for: the row of %q spells its key in another way (007 for 7, or a "+
		"UUID in capitals), and would look like one", shown(record.Key, true)))
}

// progress reports the state of the comparison; part is the part of the work, including the part that is not settled.
func (r *comparison) progress(part float64) error {
	if r.options.Progress == nil {
		return nil
	}
	part = min(part, 1)
	if r.options.Repair {
		part /= 2 // it compares first, and then marks
	}
	if r.Marking {
		part += 0.5
	}
	r.Part = max(r.Part, part)
	r.kept.Part = r.Part
	return r.options.Progress(r.kept)
}

// sampled are the keys that are part of the sample.
func (k *Checker) sampled(keys []string) []string {
	kept := keys[:0]
	for _, key := range keys {
		if k.chosen(key) {
			kept = append(kept, key)
		}
	}
	return kept
}

// chosen reports whether a key is part of the sample.
func (k *Checker) chosen(key string) bool {
	if k.options.Sample <= 0 || k.options.Sample >= 1 {
		return true
	}
	h := uint64(14695981039346656037) // FNV-1a, and its bits mixed
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	return float64(h>>11)/(1<<53) < k.options.Sample
}

// keyOf is the key of a row.
func (k *Checker) keyOf(made *row.Row) []row.Value {
	plan := k.m.Plan()
	key := make([]row.Value, len(plan.Key))
	for i, column := range plan.Key {
		key[i] = made.Values[column]
	}
	return key
}

// keyText is a row's key as a text that no other key has.
func keyText(p *row.Plan, values []row.Value) string {
	var b strings.Builder
	for i, v := range values {
		text, _ := v.Show()
		if c := p.Columns[p.Key[i]]; c.Kind == row.KindText && c.Padded {
			text = strings.TrimRight(text, " ")
		}
		fmt.Fprintf(&b, "%d:%s,", len(text), text)
	}
	return b.String()
}
