package flushtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

// Database is a database in memory, for tests that need no real one. It implements flush.Sink by the rules that the suite Sink checks, and
// also flush.TableCreator and flush.StaleFinder. It returns an error for a batch that no pipeline may send, such as a batch whose rows are
// not sorted.
type Database struct {
	mu     sync.Mutex
	tables map[string]row.Table
	rows   map[string]map[string]stored // rows by table, then by key
	fences map[string]flush.Fence       // by job
	ledger map[string]bool
	places map[string]string // by job and shard
	marks  map[string]string // by job and name
	dead   map[string]row.DeadLetter
	inside func()
	serial int
}

// stored maps the columns of a row to their values. A missing column is NULL.
type stored map[string]row.Value

// NewDatabase returns a database that contains these tables without rows.
func NewDatabase(tables ...row.Table) *Database {
	d := &Database{
		tables: map[string]row.Table{}, rows: map[string]map[string]stored{}, fences: map[string]flush.Fence{},
		ledger: map[string]bool{}, places: map[string]string{}, marks: map[string]string{}, dead: map[string]row.DeadLetter{},
	}
	for _, t := range tables {
		d.SetTable(t)
	}
	return d
}

// SetTable makes a table, or changes the catalogue's entry of an existing table. The rows of the table stay.
func (d *Database) SetTable(t row.Table) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.setTable(t)
}

func (d *Database) setTable(t row.Table) {
	d.tables[t.Name] = t
	if d.rows[t.Name] == nil {
		d.rows[t.Name] = map[string]stored{}
	}
}

// Table implements flush.Sink. It returns the catalogue's entry of a table.
func (d *Database) Table(_ context.Context, name string) (row.Table, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, ok := d.tables[name]
	if !ok {
		return row.Table{}, fmt.Errorf("%q: %w", name, flush.ErrNoTable)
	}
	return t, nil
}

// DescribeTable implements flush.TableCreator. It returns the table that CreateTable makes.
func (d *Database) DescribeTable(t row.TableSpec) (string, row.Table, error) {
	table := row.Table{Name: t.Name, Columns: t.Columns}
	for _, index := range [][]string{t.Key, t.Unique} {
		if len(index) > 0 {
			table.Unique = append(table.Unique, index)
		}
	}
	return "CREATE TABLE " + t.Name, table, nil
}

// CreateTable implements flush.TableCreator. It makes a table that does not exist.
func (d *Database) CreateTable(_ context.Context, t row.TableSpec) error {
	_, table, err := d.DescribeTable(t)
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.tables[t.Name]; !ok {
		d.setTable(table)
	}
	return err
}

// TakeOver implements flush.Sink. It claims the fence of a job.
func (d *Database) TakeOver(_ context.Context, f flush.Fence) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if held := d.fences[f.Job]; held.Epoch > f.Epoch || held.Epoch == f.Epoch && held.Owner != f.Owner {
		return &flush.FencedError{Job: f.Job, Epoch: held.Epoch, Owner: held.Owner}
	}
	d.fences[f.Job] = f
	return nil
}

// check returns an error if the fence of the job is not f.
func (d *Database) check(f flush.Fence) error {
	if held := d.fences[f.Job]; held.Epoch != f.Epoch || held.Owner != f.Owner {
		return &flush.FencedError{Job: f.Job, Epoch: held.Epoch, Owner: held.Owner}
	}
	return nil
}

// Positions implements flush.Sink. It returns the positions of shards.
func (d *Database) Positions(_ context.Context, f flush.Fence, shards []string) ([]string, error) {
	return d.recorded(f, d.places, shards)
}

// Marks implements flush.Sink. It returns the totals of counters.
func (d *Database) Marks(_ context.Context, f flush.Fence, names []string) ([]string, error) {
	return d.recorded(f, d.marks, names)
}

func (d *Database) recorded(f flush.Fence, from map[string]string, names []string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check(f); err != nil {
		return nil, err
	}
	found := make([]string, len(names))
	for i, name := range names {
		found[i] = from[joined(f.Job, name)]
	}
	return found, nil
}

// joined makes one map key of several texts.
func joined(texts ...string) string { return fmt.Sprintf("%q", texts) }

// Apply implements flush.Sink. It writes one batch.
func (d *Database) Apply(ctx context.Context, f flush.Fence, p *row.Plan, b flush.Batch) (flush.Outcome, error) {
	if b.AwaitTurn != nil { // this database writes no row before the batch's turn
		if err := b.AwaitTurn(ctx); err != nil {
			return flush.Outcome{}, err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if b.Shard == "" {
		return flush.Outcome{}, errors.New("a batch does not say of which shard it is")
	}
	entry := joined(cmp.Or(b.Job, f.Job), b.ID, fmt.Sprint(b.Part))
	place := joined(f.Job, b.Shard)
	switch {
	case b.Move != nil && d.places[place] == b.Move.To, b.Move == nil && b.Part >= 0 && d.ledger[entry]:
		return flush.Outcome{}, nil
	case b.Move != nil && d.places[place] != b.Move.From:
		return flush.Outcome{}, fmt.Errorf("%w: %q is at %q", flush.ErrMoved, b.Shard, d.places[place])
	}
	if err := d.check(f); err != nil {
		return flush.Outcome{}, err
	}
	fit, dead, err := d.sort(p, b)
	if err != nil {
		return flush.Outcome{}, err
	}
	if b.DeadLimit > 0 && len(dead) > b.DeadLimit {
		return flush.Outcome{}, &flush.TooManyDeadError{Dead: len(dead), Limit: b.DeadLimit, First: dead[0]}
	}
	if d.inside != nil {
		d.inside()
	}
	deleted := int64(0)
	for _, r := range fit {
		if d.write(p, r) {
			deleted++
		}
	}
	d.bury(joined(f.Job, b.ID, fmt.Sprint(b.Part)), dead)
	for _, m := range b.Marks {
		d.marks[joined(f.Job, m.Name)] = m.Value
	}
	if b.Move != nil {
		d.places[place] = b.Move.To
	} else if b.Part >= 0 {
		d.ledger[entry] = true
	}
	return flush.Outcome{Applied: true, Rows: int64(len(fit)), Deleted: deleted, Dead: dead}, nil
}

// sort separates the rows that can be written from the rows that become dead letters.
func (d *Database) sort(p *row.Plan, b flush.Batch) (fit []row.Row, dead []row.DeadLetter, err error) {
	if _, ok := d.tables[p.Table.Name]; !ok {
		return nil, nil, fmt.Errorf("%q: %w", p.Table.Name, flush.ErrNoTable)
	}
	dead = slices.Clone(b.Dead)
	for i, r := range slices.Concat(b.Rows, b.Late) {
		if i > 0 && i < len(b.Rows) && len(p.Key) > 0 && p.CompareKeys(&b.Rows[i-1], &r) >= 0 {
			return nil, nil, fmt.Errorf("row %d of batch %s is out of order or twice there", i, b.ID)
		}
		if cause := d.refuses(p, r); cause != "" {
			dead = append(dead, row.DeadLetter{Record: row.RecordJSON(p.Inputs, r.Record), Error: "the database refused the row: " + cause})
			continue
		}
		fit = append(fit, r)
	}
	seen := map[string]bool{}
	for _, m := range b.Marks {
		if seen[m.Name] {
			return nil, nil, fmt.Errorf("mark %q twice in batch %s", m.Name, b.ID)
		}
		seen[m.Name] = true
	}
	return fit, dead, nil
}

// refuses returns the error of the first column that rejects its value, or "" if no column rejects its value.
func (d *Database) refuses(p *row.Plan, r row.Row) string {
	if r.Delete {
		return ""
	}
	_, old := d.find(p, r)
	for i, v := range r.Values {
		switch c := p.Columns[i]; {
		case v.IsNull() && !c.Nullable && c.Op != row.OpAdd,
			v.IsAbsent() && !c.Nullable && !c.Default && (old == nil || r.Replace):
			return c.Name + " is not nullable"
		case c.Kind == row.KindText && c.MaxChars > 0 && len([]rune(v.Text())) > c.MaxChars:
			return c.Name + " is too long"
		}
	}
	return ""
}

// write writes a row. It reports whether a row was deleted.
func (d *Database) write(p *row.Plan, r row.Row) (deleted bool) {
	rows := d.rows[p.Table.Name]
	key, old := d.find(p, r)
	if old != nil && p.Keep && !r.Delete {
		return false
	}
	if old != nil {
		delete(rows, key)
	}
	if r.Delete {
		return old != nil
	}
	next := stored{}
	if !r.Replace {
		maps.Copy(next, old)
	}
	for i, c := range p.Columns {
		v := r.Values[i]
		have, there := next[c.Name]
		switch {
		case v.IsAbsent(), c.Op == row.OpAdd && there && v.IsNull():
			continue
		case c.Op == row.OpAdd && there && !have.IsNull():
			v, _ = row.Add(have, v)
		}
		next[c.Name] = v
	}
	if d.serial++; len(p.Table.Unique) > 0 {
		rows[keyOf(p.Table, next)] = next
	} else {
		rows[fmt.Sprint(d.serial)] = next
	}
	return false
}

// find returns the existing row that has the key of r, and the key under which d.rows contains that row.
func (d *Database) find(p *row.Plan, r row.Row) (key string, found stored) {
	if len(p.Key) == 0 {
		return "", nil
	}
	want := stored{}
	for _, k := range p.Key {
		want[p.Columns[k].Name] = r.Values[k]
	}
	is := func(have stored) bool {
		for name, v := range want {
			if row.Compare(have[name], v) != 0 {
				return false
			}
		}
		return true
	}
	rows := d.rows[p.Table.Name]
	if unique := p.Table.Unique; len(unique) > 0 && !slices.ContainsFunc(unique[0],
		func(name string) bool { return want[name] == row.Value{} }) {
		if key = keyOf(p.Table, want); rows[key] != nil && is(rows[key]) {
			return key, rows[key]
		}
		return "", nil
	}
	for key, have := range rows {
		if is(have) {
			return key, have
		}
	}
	return "", nil
}

// keyOf returns the values of the columns of a table's first unique index, joined by "|".
func keyOf(t row.Table, r stored) string {
	return show(r, t.Unique[0])
}

// show returns the values of columns, joined by "|", with "-" for NULL.
func show(r stored, columns []string) string {
	texts := make([]string, len(columns))
	for i, name := range columns {
		if texts[i] = textOf(r[name]); r[name].IsNull() {
			texts[i] = "-"
		}
	}
	return strings.Join(texts, "|")
}

// textOf formats a value. It returns the bytes of a KindBytes value unchanged.
func textOf(v row.Value) string {
	if v.Kind() == row.KindBytes {
		return v.Text()
	}
	text, _ := v.Show()
	return text
}

// bury stores dead letters under a key that identifies each letter, so that a batch that is applied again replaces its own dead letters.
func (d *Database) bury(batch string, dead []row.DeadLetter) {
	seen := map[string]int{}
	for _, letter := range dead {
		d.dead[fmt.Sprintf("%s %q %9d", batch, letter.Record, seen[letter.Record])] = letter
		seen[letter.Record]++
	}
}
