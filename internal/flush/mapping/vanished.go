package mapping

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"baton/internal/flush/row"
)

// Vanished finds, identifies and deletes stale rows.
type Vanished struct {
	// plan has the key's columns, in the order of their index, and the generation if there is one.
	// All of them are its key: a row that was written again meanwhile is another one.
	plan   row.Plan
	list   row.Plan     // see List
	lead   int          // how many columns of the key come before those of members
	keys   int          // of the columns
	reads  []row.Reader // by column
	inputs []int        // by column: index into Record.Inputs
	width  int          // of Record.Inputs
}

// Vanished also returns the inputs of the key. It refuses a key that does not lead from a row back
// to its record. generation is "" if all rows of the table are searched for.
func (m *Mapping) Vanished(generation string) (v *Vanished, inputs []string, err error) {
	v = &Vanished{width: len(m.plan.Inputs), plan: row.Plan{Table: m.plan.Table, Inputs: m.plan.Inputs}}
	var problems []error
	names := m.indexOrder()
	v.lead = m.lead(names)
	if v.keys = len(names); generation != "" {
		names = append(names, generation)
	}
	for _, name := range names {
		i := slices.IndexFunc(m.columns, func(c column) bool { return c.name == name })
		c, target := m.columns[i], m.plan.Columns[i].Column
		if name != generation {
			if problem := c.sweepable(target, m.plan.Inputs[c.input]); problem != nil {
				problems = append(problems, fmt.Errorf("table %q: column %q of `key` %w", m.plan.Table.Name, name, problem))
			}
			inputs = append(inputs, m.plan.Inputs[c.input])
		}
		v.plan.Key = append(v.plan.Key, len(v.plan.Columns))
		v.plan.Columns = append(v.plan.Columns, row.PlanColumn{Column: target})
		v.reads = append(v.reads, c.read)
		v.inputs = append(v.inputs, c.input)
	}
	v.list = v.plan
	v.list.Key, v.list.Columns = v.plan.Key[:v.keys:v.keys], v.plan.Columns[:v.keys:v.keys]
	return v, inputs, errors.Join(problems...)
}

// sweepable refuses a column whose value does not determine the text in Redis.
func (c *column) sweepable(target row.Column, input string) error {
	if !c.named || input == row.InputValue {
		return fmt.Errorf("is made from %s, by which no record can be looked for: where vanished rows are deleted make it from what "+
			"the key's pattern captures, %s or %s", input, row.InputKey, row.InputMember)
	}
	switch target.Kind {
	case row.KindInteger, row.KindText, row.KindUUID, row.KindBytes:
		if c.what == target.Kind.String() || c.what == row.KindText.String() {
			return nil
		}
	}
	return fmt.Errorf("is a %s (%s) read as a %s, from which the text in Redis cannot be told: where vanished rows are deleted the "+
		"key is made of integers, texts, bytes and UUIDs", target.Kind, target.DBType, c.what)
}

// Spells reports whether the row of a record spells the key as the record does, as far as the record has it.
// By a row that does not, its record cannot be searched for.
func (v *Vanished) Spells(r *row.Record) bool {
	for i, read := range v.reads[:v.keys] {
		raw := r.Inputs[v.inputs[i]]
		if !raw.OK {
			continue
		}
		if value, err := read(raw.Text); err == nil && !spells(value, v.plan.Columns[i].Kind, raw.Text) {
			return false
		}
	}
	return true
}

// spells reports whether a column of a kind shows a value by this text.
func spells(value row.Value, kind row.Kind, text string) bool {
	if kind != row.KindInteger && kind != row.KindUUID {
		return true // it holds the text itself
	}
	shown, _ := value.Show()
	return shown == text
}

// spelled is a reader that refuses texts that the column would spell differently.
func spelled(read row.Reader, kind row.Kind) row.Reader {
	return func(text string) (row.Value, error) {
		value, err := read(text)
		if err != nil || spells(value, kind, text) {
			return value, err
		}
		shown, _ := value.Show()
		return value, fmt.Errorf("%s would be %s in its row, by which the key could not be found again, and the row would be deleted: "+
			"let the column be a text, or set `on_missing: ignore`", row.Quote(text), shown)
	}
}

// indexOrder names the key's columns in the order of their index.
func (m *Mapping) indexOrder() []string {
	var key []string
	for _, i := range m.plan.Key {
		key = append(key, m.plan.Columns[i].Name)
	}
	var order []string
	for _, unique := range m.plan.Table.Unique {
		if sameNames(unique, key) && (order == nil || m.lead(unique) > m.lead(order)) {
			order = slices.Clone(unique)
		}
	}
	if order == nil {
		return key
	}
	return order
}

// Plan is the plan of the deletion: its columns are the key's, in the order of their index, and
// the generation if there is one.
func (v *Vanished) Plan() *row.Plan { return &v.plan }

// KeyText names the key's columns in a message.
func (v *Vanished) KeyText() string {
	var names []string
	for _, c := range v.plan.Columns[:v.keys] {
		names = append(names, c.Name)
	}
	return list(names)
}

// Key is the key in the texts of a row.
func (v *Vanished) Key(texts []string) ([]row.Value, error) { return v.values(texts[:v.keys]) }

// values reads the texts of a row.
func (v *Vanished) values(texts []string) ([]row.Value, error) {
	values := make([]row.Value, len(texts))
	for i, text := range texts {
		var err error
		if values[i], err = v.reads[i](v.text(i, text)); err != nil {
			return nil, fmt.Errorf("column %q of a row holds a value that no scan has written: %w", v.plan.Columns[i].Name, err)
		}
	}
	return values, nil
}

// text is a column's text without the column's padding.
func (v *Vanished) text(column int, text string) string {
	if c := &v.plan.Columns[column]; c.Kind == row.KindText && c.Padded {
		return strings.TrimRight(text, " ")
	}
	return text
}

// Record is the part of the record that the texts of a row determine.
func (v *Vanished) Record(texts []string) row.Record {
	r := row.Record{Inputs: make([]row.Raw, v.width), Gone: true}
	for i, input := range v.inputs[:min(len(v.inputs), len(texts))] {
		r.Inputs[input] = row.Raw{Text: v.text(i, texts[i]), OK: true}
	}
	return r
}

// Row is the deletion of the row of a record.
func (v *Vanished) Row(r row.Record) (row.Row, error) {
	texts := make([]string, len(v.inputs))
	for i, input := range v.inputs {
		texts[i] = r.Inputs[input].Text
	}
	values, err := v.values(texts)
	return row.Row{Values: values, Delete: true, Record: r}, err
}

// Compare orders rows by key, and then by generation.
func (v *Vanished) Compare(a, b *row.Row) int {
	for i := range a.Values {
		if c := row.Compare(a.Values[i], b.Values[i]); c != 0 {
			return c
		}
	}
	return 0
}
