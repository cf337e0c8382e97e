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

// ErrNoMarks means that keys of a source cannot be marked, because each run of the job reads all keys.
var ErrNoMarks = errors.New("every run of the job reads everything, so nothing has to be marked")

const (
	// tableRows is the number of rows whose records one search looks for.
	tableRows = 1000
	// mostSuspects is the maximum number of differences that may wait for their second comparison.
	mostSuspects = 20_000
	// systematic is a number of differences. If at least that many differences all persist in a second comparison, the next differences
	// count without a second comparison. An empty table, for example, causes so many differences; a race with the flush causes fewer.
	systematic = 5000
	// chunk is the number of suspects that are read at a time.
	chunk = 1000
	// longestWait is the maximum time between the first and the second comparison of a difference.
	longestWait = 10 * time.Second
	// tries is how often a difference is compared again before its record counts as moving.
	tries = 4
	// defaultPct is the maximum share of the rows, in percent, that a repair may delete, unless the job sets another one.
	defaultPct = 10
	// examplesOf is the number of examples of each kind, unless the options set another one.
	examplesOf = 5
)

// Options are the settings of a comparison.
type Options struct {
	// Sample is the share of all keys to compare; the hash of a key decides whether it is in the sample. 0 or 1 means all keys.
	Sample float64
	// Rate is the maximum number of keys and rows to read in a second, including those that are not compared. 0 means no limit.
	Rate int
	// Repair marks the differences, so that the flush writes their rows again. It compares everything before the first mark. Because of the
	// marks, the flush never deletes more rows than that comparison found, or than the job allows.
	Repair bool
	// May, if set, returns an error if a repair must not mark keys. The argument would contains the numbers of rows that the flush would
	// change and delete because of the marks. The result bounded says that the repair must not mark more rows than these numbers.
	May func(ctx context.Context, would flush.Unaccepted) (bounded bool, err error)
	// Examples is the number of examples of each kind. Default 5.
	Examples int
	// Flushed waits until a run of the flush has written everything that the source contained at the time since. It returns false if no run
	// ends within a reasonable time.
	Flushed func(ctx context.Context, since time.Time) (bool, error)
	// Progress, if set, is called regularly with the state. If a comparison continues from that state, it repeats the part that was not
	// settled. An error of Progress ends the comparison.
	Progress func(State) error
}

// Checker compares the records of a job with its table.
type Checker struct {
	options Options
	source  Source
	table   Table
	name    string // of the table
	m       *mapping.Mapping
	skipped []bool // for each column of the plan, whether the column is not compared
	// vanished finds rows without a record. nil means that the comparison does not look for such rows.
	vanished *mapping.Vanished
	empties  bool // a row with NULL in all columns but its key counts as vanished
	maxPct   int  // the maximum share of the rows, in percent, that a repair may delete
	notes    []string
	pace     pace
}

// New compiles the mapping of a job for its table. It opens the source with the inputs that the mapping needs.
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
		return nil, fmt.Errorf("table %q: a column with `op: add` has the sum of all increments so far, "+
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
		k.notes = append(k.notes, fmt.Sprintf("columns %s were compared only where the record has a value. Without a value the row keeps "+
			"its own, because of `missing: keep` or because the default is not constant", strings.Join(kept, ", ")))
	}
	k.prepareExtra(c.Policy)
	return k, nil
}

// prepareExtra decides whether the comparison can and should search for rows without a record.
func (k *Checker) prepareExtra(p flush.Policy) {
	if p.VanishedPct == 0 && p.OnMissing != mapping.MissingDelete {
		k.notes = append(k.notes, "rows without a record were not searched for, because the job keeps such rows")
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

// Run continues from the state of an earlier comparison, until everything is compared. If the options say so, it then repairs: it marks the
// differences. If Run returns an error, it still returns its state.
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

// all compares all records with their rows, and then searches for the record of each row.
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
	// kept is the last state without suspects. A comparison that continues from kept counts no difference twice.
	kept     State
	suspects map[string]suspect // by the text of the row's key
	since    time.Time          // when the suspects began to wait
	unmoved  bool               // no run of the flush ended during a wait
	bounded  bool               // a repair must not mark more differing rows than it has counted
	surely   bool               // many differences were compared a second time, and all have persisted
}

// suspect is a row that differed from its record at the first comparison.
type suspect struct {
	key  string // the key in Redis
	kind Kind
	sum  uint64 // a checksum of the record with which the row was compared
}

// keep saves the present state, from which a comparison can continue.
func (r *comparison) keep() {
	r.kept = r.State
	r.kept.Result.Examples, r.kept.Result.Notes = slices.Clip(r.Result.Examples), slices.Clip(r.Result.Notes)
}

// again makes the comparison begin again with the first record.
func (r *comparison) again() {
	r.Table, r.Behind, r.Result.Marked, r.Marks = false, nil, 0, Result{}
	if !r.Marking {
		r.Result = Result{Notes: r.Result.Notes}
	}
	clear(r.suspects)
	r.since = time.Time{}
	r.keep()
}

// found returns the Result in which differences are now counted.
func (r *comparison) found() *Result {
	if r.Marking {
		return &r.Marks
	}
	return &r.Result
}

// waited reports whether the oldest suspects have waited long enough for their second comparison. If they waited longer, a comparison that
// continues in another process would have to repeat more work.
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

// records compares all records with their rows. If it may have missed records, it returns the reason.
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
		if r.repeated(some.Again) {
			r.again()
			place = ""
			continue
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

// first compares records with their rows for the first time. Rows that differ become suspects, which are compared again later.
func (r *comparison) first(ctx context.Context, records []row.Record) error {
	for i := range records {
		if !records[i].Gone {
			r.found().Records++
			r.spells(&records[i])
		}
	}
	err := r.compare(ctx, records, func(f finding) { r.suspects[f.text] = f.suspect })
	if err == nil && len(r.suspects) >= mostSuspects { // checked here because a single large set can have that many members
		err = r.settle(ctx)
	}
	return err
}

// spells records whether a row spells its key differently from its record. If it does, a search by the row's key would not find the record,
// and a repair would delete the row.
func (r *comparison) spells(record *row.Record) {
	if r.vanished == nil || r.Misspelled || r.vanished.Spells(record) {
		return
	}
	r.Misspelled = true
	r.Result.note(fmt.Sprintf("rows without a record were not searched for: the row of %q spells its key in another way (007 for 7, or a "+
		"UUID in capitals), and would look like a row without a record", shown(record.Key, true)))
}

// progress reports the state of the comparison. The argument part is the finished share of the work, including rows that must be compared
// again.
func (r *comparison) progress(part float64) error {
	if r.options.Progress == nil {
		return nil
	}
	part = min(part, 1)
	if r.options.Repair {
		part /= 2 // a repair first compares and then marks
	}
	if r.Marking {
		part += 0.5
	}
	r.Part = max(r.Part, part)
	r.kept.Part = r.Part
	return r.options.Progress(r.kept)
}

// sampled returns the keys that are in the sample.
func (k *Checker) sampled(keys []string) []string {
	kept := keys[:0]
	for _, key := range keys {
		if k.chosen(key) {
			kept = append(kept, key)
		}
	}
	return kept
}

// chosen reports whether a key belongs to the sample that is compared.
func (k *Checker) chosen(key string) bool {
	if k.options.Sample <= 0 || k.options.Sample >= 1 {
		return true
	}
	h := uint64(14695981039346656037) // FNV-1a, with its bits mixed afterwards
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	return float64(h>>11)/(1<<53) < k.options.Sample
}

// keyOf returns the key of a row.
func (k *Checker) keyOf(made *row.Row) []row.Value {
	plan := k.m.Plan()
	key := make([]row.Value, len(plan.Key))
	for i, column := range plan.Key {
		key[i] = made.Values[column]
	}
	return key
}

// keyText returns a text that identifies a row's key.
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
