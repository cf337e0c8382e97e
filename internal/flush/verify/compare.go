package verify

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"baton/internal/flush/row"
)

// finding is a row that differs from its record. It contains the text of the row's key, and the columns that differ, or the reason why the
// record does not fit the table.
type finding struct {
	suspect
	text    string
	member  string // the member of a set, for an example
	columns []Column
	why     error
}

// member returns the member of a set or sorted set that the record describes, to be shown in an example. It returns "" if the record's key
// already is the member.
func (k *Checker) member(record *row.Record) string {
	at := slices.Index(k.m.Inputs(), row.InputMember)
	if at < 0 || !record.Inputs[at].OK || record.Inputs[at].Text == record.Key {
		return ""
	}
	return shown(record.Inputs[at].Text, true)
}

// compare compares records with their rows, and calls the function each for every difference.
func (r *comparison) compare(ctx context.Context, records []row.Record, each func(finding)) error {
	plan := r.m.Plan()
	rows := make(map[string]row.Row, len(records))
	var keys [][]row.Value
	for i := range records {
		if records[i].Gone {
			continue
		}
		made, text, err := r.convert(&records[i])
		if err != nil {
			each(finding{suspect{records[i].Key, Unfit, sumOf(&records[i])}, text, r.member(&records[i]), nil, err})
			continue
		}
		if _, twice := rows[text]; !twice {
			keys = append(keys, r.keyOf(&made))
		}
		rows[text] = made
	}
	have, err := r.read(ctx, keys, func(text string) bool { _, wanted := rows[text]; return wanted })
	if err != nil {
		return err
	}
	for _, key := range keys {
		text := keyText(plan, key)
		made, cells := rows[text], have[text]
		f := finding{suspect{made.Record.Key, Missing, sumOf(&made.Record)}, text, r.member(&made.Record), nil, nil}
		if cells != nil {
			f.kind = Different
			if f.columns, err = r.differing(ctx, made, key, cells); err != nil {
				return err
			}
			if len(f.columns) == 0 {
				continue
			}
		}
		each(f)
	}
	return nil
}

// convert returns the row of a record, and the text of the row's key. For a record that does not fit, the text identifies the record.
func (k *Checker) convert(record *row.Record) (made row.Row, text string, err error) {
	if made, err = k.m.Row(*record); err != nil {
		return made, "unfit " + unfitText(record), err
	}
	return made, keyText(k.m.Plan(), k.keyOf(&made)), nil
}

// sumOf returns a checksum of the record's inputs. It shows whether a record has changed.
func sumOf(record *row.Record) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, raw := range record.Inputs {
		_, _ = h.WriteString(raw.Text) // never fails
		_ = h.WriteByte(byte(len(raw.Text)))
		if raw.OK {
			_ = h.WriteByte(1)
		}
	}
	return h.Sum64()
}

var seed = maphash.MakeSeed()

// unfitText returns a text that identifies a record that does not fit the table, so that it has no row.
func unfitText(record *row.Record) string {
	var b strings.Builder
	b.WriteString(record.Key)
	for _, raw := range record.Inputs {
		fmt.Fprintf(&b, "\x00%d", len(raw.Text))
	}
	return b.String()
}

// read reads rows by their keys, and returns them by the texts of their keys.
func (r *comparison) read(ctx context.Context, keys [][]row.Value, wanted func(text string) bool) (map[string][]row.Raw, error) {
	have := make(map[string][]row.Raw, len(keys))
	if len(keys) == 0 {
		return have, nil
	}
	plan := r.m.Plan()
	byCells := map[string]string{} // the texts of the keys, by the database's spelling of the keys
	err := r.table.ReadRows(ctx, plan, keys, func(cells []row.Raw) error {
		text, ok := r.textOf(cells, keys, byCells)
		if ok && wanted(text) {
			have[text] = cells
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read rows of table %q: %w", r.name, err)
	}
	return have, nil
}

// textOf returns the text that identifies a row by its key. It is the same text for all spellings of that key in the database.
func (r *comparison) textOf(cells []row.Raw, keys [][]row.Value, byCells map[string]string) (string, bool) {
	plan := r.m.Plan()
	values := make([]row.Value, len(plan.Key))
	for i, column := range plan.Key {
		c := plan.Columns[column].Column
		v, ok := spelled(c, cells[column])
		if !ok {
			return r.searched(cells, keys, byCells)
		}
		values[i] = v
	}
	return keyText(plan, values), true
}

// searched finds the key of a row by comparing it with each of the keys.
func (r *comparison) searched(cells []row.Raw, keys [][]row.Value, known map[string]string) (string, bool) {
	plan := r.m.Plan()
	var id strings.Builder
	for _, column := range plan.Key {
		fmt.Fprintf(&id, "%d:%s,", len(cells[column].Text), cells[column].Text)
	}
	if text, ok := known[id.String()]; ok {
		return text, text != ""
	}
	at := slices.IndexFunc(keys, func(key []row.Value) bool {
		for i, column := range plan.Key {
			if equal, _ := same(plan.Columns[column].Column, key[i], cells[column]); !equal {
				return false
			}
		}
		return true
	})
	text := ""
	if at >= 0 {
		text = keyText(plan, keys[at])
	}
	known[id.String()] = text
	return text, at >= 0
}

// spelled returns the value of a text in a key column, if the value has only one spelling.
func spelled(c row.Column, cell row.Raw) (row.Value, bool) {
	if !cell.OK {
		return row.Value{}, false
	}
	switch c.Kind {
	case row.KindInteger, row.KindText, row.KindBytes, row.KindUUID:
		read, _ := row.NewReader(c.Kind, row.Column{Kind: c.Kind, Unsigned: c.Unsigned}, row.OpSet, "")
		v, err := read(cell.Text)
		return v, err == nil
	}
	return row.Value{}, false
}

// differing returns the columns in which the row in the table differs from the row made, which was made from the record.
func (r *comparison) differing(ctx context.Context, made row.Row, key []row.Value, cells []row.Raw) ([]Column, error) {
	plan := r.m.Plan()
	var columns []Column
	for i, c := range plan.Columns {
		want := made.Values[i]
		if r.skipped[i] || want.IsAbsent() || slices.Contains(plan.Key, i) {
			continue
		}
		equal, sure := same(c.Column, want, cells[i])
		if !equal && !sure {
			var err error
			if equal, err = r.table.Holds(ctx, plan, key, i, want); err != nil {
				return nil, fmt.Errorf("compare column %q of table %q: %w", c.Name, r.name, err)
			}
		}
		if !equal {
			text, ok := want.Show()
			columns = append(columns, Column{Name: c.Name, Redis: shown(text, ok), Table: shown(cells[i].Text, cells[i].OK)})
		}
	}
	return columns, nil
}

// shown formats a value so that it can be shown in an example.
func shown(text string, ok bool) string {
	const most = 64
	if !ok {
		return "NULL"
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// flushed waits for a run of the flush. If no run ends in time, it adds a note to the result.
func (r *comparison) flushed(ctx context.Context, since time.Time) error {
	if r.options.Flushed == nil || r.unmoved || r.surely {
		return context.Cause(ctx)
	}
	ok, err := r.options.Flushed(ctx, since)
	if err != nil {
		return err
	}
	if !ok {
		r.unmoved = true // the next suspects would also wait in vain
		r.Result.note("the comparison waited, but no run of the job succeeded, so some differences may just be changes not flushed yet")
	}
	return nil
}
