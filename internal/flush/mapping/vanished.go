package mapping

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"baton/internal/flush/row"
)

// Vanished finds the record of a row, and deletes the rows whose records do not exist any longer.
type Vanished struct {
	// plan has the columns of the table's key, in the order of the index, and the generation if there is one. All of these columns are the
	// plan's key, so that a row that was written again in another generation counts as another row.
	plan   row.Plan
	list   row.Plan     // see List
	lead   int          // the number of key columns before the first column that is made from a member
	keys   int          // the number of key columns
	reads  []row.Reader // the readers, by column
	inputs []int        // the index into Record.Inputs, by column
	width  int          // the length of Record.Inputs
}

// Vanished returns two results: a Vanished for the mapping's table, and the names of the inputs that the key is made from. The method fails
// for a key that does not determine the record. The argument generation names the generation column; it is "" if the rows of every
// generation are checked.
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
		return fmt.Errorf("is made from %s, which does not identify a record: to delete vanished rows, make it from a part that "+
			"the key's pattern captures, from %s or from %s", input, row.InputKey, row.InputMember)
	}
	switch target.Kind {
	case row.KindInteger, row.KindText, row.KindUUID, row.KindBytes:
		if c.what == target.Kind.String() || c.what == row.KindText.String() {
			return nil
		}
	}
	return fmt.Errorf("is a %s (%s) read as a %s, so baton cannot tell from its value the text in Redis: to delete vanished rows, "+
		"make the key of integers, texts, bytes or UUIDs", target.Kind, target.DBType, c.what)
}

// Spells reports whether the record and its row spell the key in the same way. It compares only the parts of the key that the record
// contains. If the spelling differs, the record cannot be found from the row.
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

// spells reports whether a column of this kind, after storing the value, returns it as this text.
func spells(value row.Value, kind row.Kind, text string) bool {
	if kind != row.KindInteger && kind != row.KindUUID {
		return true // the column stores the text itself
	}
	shown, _ := value.Show()
	return shown == text
}

// spelled returns a reader that refuses texts that the column would spell differently.
func spelled(read row.Reader, kind row.Kind) row.Reader {
	return func(text string) (row.Value, error) {
		value, err := read(text)
		if err != nil || spells(value, kind, text) {
			return value, err
		}
		shown, _ := value.Show()
		return value, fmt.Errorf("%s would be stored as %s. From that baton could not find the key again, and would delete the row: "+
			"make the column a text, or set `on_missing: ignore`", row.Quote(text), shown)
	}
}

// indexOrder returns the names of the key's columns in the order of the index.
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

// Plan returns the plan of the deletion. Its columns are the columns of the key, in the order of the index, and the generation if there is
// one.
func (v *Vanished) Plan() *row.Plan { return &v.plan }

// KeyText returns the names of the key's columns for a message.
func (v *Vanished) KeyText() string {
	var names []string
	for _, c := range v.plan.Columns[:v.keys] {
		names = append(names, c.Name)
	}
	return list(names)
}

// Key returns the key from the texts of a row.
func (v *Vanished) Key(texts []string) ([]row.Value, error) { return v.values(texts[:v.keys]) }

// values converts the texts of a row.
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

// text returns a column's text without padding.
func (v *Vanished) text(column int, text string) string {
	if c := &v.plan.Columns[column]; c.Kind == row.KindText && c.Padded {
		return strings.TrimRight(text, " ")
	}
	return text
}

// Record returns the part of the record that follows from the texts of a row.
func (v *Vanished) Record(texts []string) row.Record {
	r := row.Record{Inputs: make([]row.Raw, v.width), Gone: true}
	for i, input := range v.inputs[:min(len(v.inputs), len(texts))] {
		r.Inputs[input] = row.Raw{Text: v.text(i, texts[i]), OK: true}
	}
	return r
}

// Row returns a row that makes a flush delete the row of the record.
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
