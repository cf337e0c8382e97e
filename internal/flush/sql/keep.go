package sql

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/sql/kept"
)

// A batch with Keep first reads and locks the old rows that it will delete, empty or adopt. After its own writes, it inserts the old rows
// into the table of deleted rows. It inserts them only then, because the database may refuse some writes, and a row that did not change is
// not kept. If the old rows have much text, the batch inserts them before its own writes, so that it needs little memory. In that case
// it later removes the inserted copies of the rows that the database refused to change.

// keptKind says why some rows are kept, and whether the batch deletes these rows.
type keptKind struct {
	why     flush.Why
	deletes bool
}

// keysOfKind contains the keys of the rows of one kind.
type keysOfKind struct {
	keptKind
	keys [][]row.Value
}

// oldRow is a row as it was before the batch.
type oldRow struct {
	keptKind
	key, text string            // the key and the whole row as JSON; text is empty once the row is stored
	sum       [sha256.Size]byte // the hash of the text
	at        time.Time
	blank     bool // all columns that the job writes are NULL, except the key
	stored    bool
}

// keptBytes limits the memory for old rows. When their texts have this length in bytes, the batch stores the old rows in the database. The
// old rows that one more statement reads may exceed the limit.
const keptBytes = 8 << 20

// readOld reads the rows that the batch will keep. If there may be such rows, it first runs the tasks in the argument before. Otherwise it
// runs nothing, and returns these tasks.
func (a *application) readOld(ctx context.Context, tx Session, before []Task, rows []row.Row) ([]Task, error) {
	kinds := a.keysToKeep(rows)
	if len(kinds) == 0 {
		return before, nil
	}
	if a.store.queries["kept_settings"] != "" {
		before = append(before, Task{Query: "kept_settings"})
	}
	if err := tx.Run(ctx, before...); err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		err := a.eachOld(ctx, tx, kind.keys, func(old oldRow) { a.remember(kind.keptKind, old) }, func() error {
			if a.oldBytes < keptBytes {
				return nil
			}
			return a.storeOld(ctx, tx)
		})
		if err != nil {
			return nil, err
		}
		a.asked = append(a.asked, kind.keys...)
	}
	return nil, nil
}

// remember adds a row to the rows that the batch keeps. It skips a row that the batch would empty and that is empty already. If a batch
// contains a key twice, remember keeps the row of the first reading.
func (a *application) remember(kind keptKind, old oldRow) {
	empties := !kind.deletes && kind.why != flush.WhyAdopted
	if a.seen[old.key] || empties && old.blank {
		return
	}
	if a.seen == nil {
		a.seen = map[string]bool{}
	}
	a.seen[old.key] = true
	old.keptKind = kind
	a.old = append(a.old, old)
	a.oldBytes += len(old.text)
}

// keysToKeep returns the keys of the rows that the batch deletes, empties or adopts, grouped by kind. The order of the kinds never changes,
// so that all batches lock their rows in the same order.
func (a *application) keysToKeep(rows []row.Row) []keysOfKind {
	if a.batch.Keep.For <= 0 || len(a.plan.Key) == 0 {
		return nil
	}
	kinds := []keysOfKind{
		{keptKind: keptKind{a.batch.Keep.Why, true}}, {keptKind: keptKind{a.batch.Keep.Why, false}},
		{keptKind: keptKind{flush.WhyAdopted, false}},
	}
	for i := range rows {
		r := &rows[i]
		var kind *keysOfKind
		switch {
		case r.Delete:
			kind = &kinds[0]
		case r.Record.Gone:
			kind = &kinds[1]
		case r.Adopted:
			kind = &kinds[2]
		default:
			continue
		}
		key := make([]row.Value, len(a.plan.Key))
		for j, k := range a.plan.Key {
			key[j] = r.Values[k]
		}
		kind.keys = append(kind.keys, key)
	}
	return slices.DeleteFunc(kinds, func(k keysOfKind) bool { return len(k.keys) == 0 })
}

// eachOld reads and locks the rows with these keys. It calls the function each for every row. After each statement it calls the function
// then.
func (a *application) eachOld(ctx context.Context, tx Session, keys [][]row.Value, each func(oldRow), then func() error) error {
	most := rowsAsked
	if len(a.plan.Key) > 1 {
		most = keysSpelled
	}
	for some := range slices.Chunk(keys, most) {
		if err := a.someOld(ctx, tx, some, each); err != nil {
			return fmt.Errorf("read the rows to keep: %w", err)
		}
		if err := then(); err != nil {
			return err
		}
	}
	return nil
}

// someOld reads and locks rows by one statement. Like keyRows, it skips keys that their columns cannot contain. In some databases a refused
// statement aborts the transaction. For such a database, someOld sets a savepoint before each statement.
func (a *application) someOld(ctx context.Context, tx Session, keys [][]row.Value, each func(oldRow)) error {
	saves := a.store.queries["kept_savepoint"] != ""
	if saves {
		if err := tx.Run(ctx, Task{Query: "kept_savepoint"}); err != nil {
			return err
		}
	}
	var found []oldRow // the function each is called only later, because a statement may return rows before the database refuses it
	query, args := a.oldQuery(keys)
	err := tx.Read(ctx, query, args, func(values []any) error {
		old, err := a.oldRow(values)
		found = append(found, old)
		return err
	})
	refused := err != nil
	if refused && a.store.dialect.Judge(err) != Refused {
		return err
	}
	if saves {
		var undo []Task
		if refused {
			undo = append(undo, Task{Query: "kept_undo"})
		}
		// Savepoints that are not released slow down the other sessions of PostgreSQL.
		if ended := tx.Run(ctx, append(undo, Task{Query: "kept_release"})...); ended != nil {
			return errors.Join(err, ended)
		}
	}
	if !refused {
		for _, old := range found {
			each(old)
		}
		return nil
	}
	for _, half := range halves(keys) {
		if err := a.someOld(ctx, tx, half, each); err != nil {
			return err
		}
	}
	return nil
}

// oldQuery returns the query that reads and locks the rows of some keys.
func (a *application) oldQuery(keys [][]row.Value) (query string, args []any) {
	d := a.store.dialect
	var names, order []string
	for _, c := range a.plan.Table.Columns {
		name := d.Quote.Ident(c.Name)
		if d.Typed != nil {
			name = d.Typed(name)
		}
		names = append(names, name)
	}
	for _, k := range a.plan.Key {
		order = append(order, d.Quote.Ident(a.plan.Columns[k].Name))
	}
	where, args := a.store.anyOf(a.plan, keys)
	return fmt.Sprintf(a.store.queries["kept_read"], d.Fragments.Now, strings.Join(names, ", "), d.Quote.Table(a.plan.Table.Name), where,
		strings.Join(order, ", ")), args
}

// oldRow makes an oldRow from the values that oldQuery's query returns for one row. These values are the database's time and the values of
// all columns.
func (a *application) oldRow(values []any) (old oldRow, err error) {
	clock, _, _ := strings.Cut(Text(values[0]), "+")
	if old.at, err = time.Parse(time.DateTime, clock); err != nil {
		return old, fmt.Errorf("the database's clock: %w", err)
	}
	cells := make([]kept.Cell, len(a.plan.Table.Columns))
	of := map[string]kept.Cell{}
	for i, c := range a.plan.Table.Columns {
		cells[i] = kept.Cell{Name: c.Name, Value: a.store.keptValue(c, values[i+1])}
		of[c.Name] = cells[i]
	}
	var key []kept.Cell
	for _, name := range rowKey(a.plan) {
		key = append(key, of[name])
	}
	old.blank = true
	for i, c := range a.plan.Columns {
		old.blank = old.blank && (IsKey(a.plan, i) || of[c.Name].Value == nil)
	}
	if old.text, err = kept.Encode(cells); err == nil {
		old.key, err = kept.Encode(key)
	}
	old.sum = sha256.Sum256([]byte(old.text))
	return old, err
}

// rowKey returns the names of the columns that identify a row. The key of the plan that deletes vanished rows also contains the generation,
// as its last column. The generation is omitted, because a row that was written again is the same row in another generation.
func rowKey(p *row.Plan) []string {
	var names []string
	for _, k := range p.Key {
		names = append(names, p.Columns[k].Name)
	}
	last := len(names) - 1
	if slices.ContainsFunc(p.Table.Unique, func(unique []string) bool { return sameColumns(unique, names[:last]) }) {
		return names[:last]
	}
	return names
}

func sameColumns(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// keptValue converts a value that was read into an argument that sets the column to the same value again.
func (s *Store) keptValue(c row.Column, value any) any {
	raw, ok := value.([]byte)
	if text, is := value.(string); is && c.Kind == row.KindInteger && s.dialect.Typed == nil {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	}
	switch {
	case !ok || s.dialect.Typed != nil || c.Kind == row.KindBytes:
		return value
	case c.Kind == row.KindInteger && strings.HasPrefix(c.DBType, "bit"):
		var number [8]byte
		copy(number[8-min(8, len(raw)):], raw)
		return binary.BigEndian.Uint64(number[:])
	}
	return string(raw)
}

// unseenError means that the batch deleted more rows than it had read. The transaction is rolled back.
type unseenError struct {
	table         string
	deleted, seen int64
}

func (e *unseenError) Error() string {
	return fmt.Sprintf("a batch would delete %d rows of table %q, and the database has shown %d of them to SELECT … FOR UPDATE, so none "+
		"was deleted, because `keep_deleted` could not keep the other rows. Another program may have inserted these rows meanwhile, "+
		"and then the next attempt succeeds. If it fails again, a row-level security policy lets this user delete rows that it may "+
		"not update or read: change the policy, or remove `keep_deleted`", e.deleted, e.table, e.seen)
}

// Is reports that the error is a flush.ErrTransient, so that the batch is tried again.
func (*unseenError) Is(target error) bool { return target == flush.ErrTransient }

// keepOld inserts the old rows that the batch has deleted, emptied or adopted into the table of deleted rows.
func (a *application) keepOld(ctx context.Context, tx Session) error {
	if a.batch.Keep.For <= 0 {
		return nil
	}
	if a.deleted != a.deletesOfOld() || len(a.dead) > len(a.batch.Dead) {
		if err := a.dropUnchanged(ctx, tx); err != nil {
			return err
		}
	}
	if seen := a.deletesOfOld(); a.deleted > seen {
		return &unseenError{a.plan.Table.Name, a.deleted, seen}
	}
	return a.storeOld(ctx, tx)
}

// storeOld inserts the old rows that are not stored yet into the table of deleted rows.
func (a *application) storeOld(ctx context.Context, tx Session) error {
	text := func(s string) row.Value { return row.String(row.KindText, s) }
	var rows []row.Row
	for i := range a.old {
		old := &a.old[i]
		if old.stored {
			continue
		}
		rows = append(rows, row.Row{Values: []row.Value{
			text(a.store.lockKey), text(a.fence.Job), text(a.plan.Table.Name), text(old.key), text(old.text), text(string(old.why)),
			row.Integer(a.fence.Epoch), row.Timestamp(old.at), row.Timestamp(old.at.Add(a.batch.Keep.For)),
		}})
		old.text, old.stored = "", true
	}
	a.oldBytes = 0
	if len(rows) == 0 {
		return nil
	}
	err := tx.Run(ctx, Task{Plan: a.store.kept(), Rows: rows})
	if err == nil {
		return nil
	}
	remedy := ""
	if a.store.dialect.Judge(err) == Refused {
		remedy = ". One statement inserts a kept row as JSON. If the JSON is too long for a statement, raise max_allowed_packet, " +
			"or remove `keep_deleted`"
	}
	return fmt.Errorf("keep %d rows of table %q for `keep_deleted`, so none of the batch was written: %w%s", len(rows),
		a.plan.Table.Name, err, remedy)
}

func (a *application) deletesOfOld() (n int64) {
	for _, old := range a.old {
		if old.deletes {
			n++
		}
	}
	return n
}

// dropUnchanged forgets the old rows that are unchanged in the table because the database refused to change them. If such a row is already
// in the table of deleted rows, dropUnchanged removes it there.
func (a *application) dropUnchanged(ctx context.Context, tx Session) error {
	now := map[[sha256.Size]byte]bool{}
	err := a.eachOld(ctx, tx, a.asked, func(old oldRow) { now[old.sum] = true }, func() error { return nil })
	if err != nil {
		return err
	}
	var back []Task
	a.old = slices.DeleteFunc(a.old, func(old oldRow) bool {
		if now[old.sum] && old.stored {
			at, until := row.Timestamp(old.at), row.Timestamp(old.at.Add(a.batch.Keep.For))
			args := []any{Argument(&until), a.store.lockKey, a.fence.Job, old.key, Argument(&at)}
			back = append(back, Task{Query: "kept_take_back", Args: args})
		}
		return now[old.sum]
	})
	return tx.Run(ctx, back...)
}

// newKeptPlan returns the plan for inserting into the table of deleted rows.
func newKeptPlan(d *Dialect, prefix string) *row.Plan {
	p := &row.Plan{Table: row.Table{Name: prefix + "deleted"}}
	for _, c := range []row.Column{
		{Name: "lock_key", Kind: row.KindText}, {Name: "job", Kind: row.KindText}, {Name: "table_name", Kind: row.KindText},
		{Name: "row_key", Kind: row.KindText}, {Name: "old_row", Kind: row.KindText}, {Name: "why", Kind: row.KindText},
		{Name: "epoch", Kind: row.KindInteger}, {Name: "at", Kind: row.KindTimestamp}, {Name: "keep_until", Kind: row.KindTimestamp},
	} {
		column, _ := d.Column(c, false) // every dialect has types for these kinds
		column.Name = c.Name
		p.Columns = append(p.Columns, row.PlanColumn{Column: column})
	}
	return p
}
