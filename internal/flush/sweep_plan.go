package flush

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// vanished is how stale rows are found, told apart and deleted.
type vanished struct {
	finder StaleFinder
	// plan has the key's columns, in the order of their index, and the generation. All
	// of them are its key: a row that was written again meanwhile is another one.
	plan   Plan
	reads  []reader // by column
	inputs []int    // by column: index into Record.Inputs
}

// checkGeneration refuses a column that cannot count passes.
func (c *compiler) checkGeneration() {
	name := c.spec.Generation
	if name == "" {
		return
	}
	if !slices.Contains(c.available.Names, InputGeneration) {
		c.problem(name, "is the `generation`, and only a scan has one: take `generation` out")
	}
	if spec, ok := c.spec.Columns[name]; ok && spec.From != InputGeneration {
		c.problem(name, "is the `generation` and is made from something else in `columns`: take it out of one of them")
	}
	if slices.Contains(c.key, name) {
		c.problem(name, "is the `generation` and cannot be part of the key, as it is another one in every pass")
	}
	i := slices.IndexFunc(c.table.Columns, func(column Column) bool { return column.Name == name })
	if i < 0 {
		return // which was said already
	}
	if column := c.table.Columns[i]; column.Kind != KindInteger || column.Bits != 64 {
		c.problem(name, "is the `generation`, which is a time in microseconds, and is a %s (%s): make it an integer of 64 bits, such as bigint", column.Kind, column.DBType)
	}
}

// compileSweep prepares for rows that vanish, and refuses a job whose stale rows
// could not be looked for again.
func (p *Pipeline) compileSweep(m *Mapping, sources []Source) error {
	if p.cfg.Vanished != VanishedDelete {
		return nil
	}
	finder, ok := p.cfg.Sink.(StaleFinder)
	if !ok {
		return errors.New("`vanished: delete` needs a database that can find rows by their generation")
	}
	v, inputs, err := m.newVanished(p.cfg.Mapping.Generation)
	if err != nil {
		return err
	}
	for _, source := range sources {
		sweeper, ok := source.(Sweeper)
		if !ok {
			return fmt.Errorf("`vanished: delete` is for a scan, which reads everything there is; %s is none", source.Name())
		}
		if err := sweeper.Finds(inputs); err != nil {
			return fmt.Errorf("table %q: `vanished: delete` has to find the record of a row by its `key` (%s): %w", m.plan.Table.Name, list(columnNames(v.keyColumns())), err)
		}
	}
	v.finder = finder
	m.vanished = v
	return nil
}

// newVanished also returns the inputs that the key is made from.
func (m *Mapping) newVanished(generation string) (v *vanished, inputs []string, err error) {
	if generation == "" {
		return nil, nil, fmt.Errorf("table %q: `vanished: delete` needs `generation`, a column that tells which rows the last scan has found", m.plan.Table.Name)
	}
	v = &vanished{plan: Plan{Table: m.plan.Table, Inputs: m.plan.Inputs}}
	var problems []error
	for _, name := range append(m.indexOrder(), generation) {
		i := slices.IndexFunc(m.columns, func(c column) bool { return c.name == name })
		c, target := m.columns[i], m.plan.Columns[i].Column
		if name != generation {
			if problem := c.sweepable(target, m.plan.Inputs[c.input]); problem != nil {
				problems = append(problems, fmt.Errorf("table %q: column %q of `key` %w", m.plan.Table.Name, name, problem))
			}
			inputs = append(inputs, m.plan.Inputs[c.input])
		}
		v.plan.Key = append(v.plan.Key, len(v.plan.Columns))
		v.plan.Columns = append(v.plan.Columns, PlanColumn{Column: target})
		v.reads = append(v.reads, c.read)
		v.inputs = append(v.inputs, c.input)
	}
	return v, inputs, errors.Join(problems...)
}

// sweepable refuses a column from which the text in Redis cannot be had back.
func (c *column) sweepable(target Column, input string) error {
	if !c.named || input == InputValue || input == InputScore {
		return fmt.Errorf("is made from %s, by which no record can be looked for: with `vanished: delete` make it from what the key's pattern captures, %s or %s", input, InputKey, InputMember)
	}
	switch target.Kind {
	case KindInteger, KindText, KindUUID, KindBytes:
		if c.what == target.Kind.String() || c.what == KindText.String() {
			return nil
		}
	}
	return fmt.Errorf("is a %s (%s) read as a %s, from which the text in Redis cannot be told: with `vanished: delete` the key is made of integers, texts, bytes and UUIDs", target.Kind, target.DBType, c.what)
}

// indexOrder names the key's columns in the order of their index.
func (m *Mapping) indexOrder() []string {
	var key []string
	for _, i := range m.plan.Key {
		key = append(key, m.plan.Columns[i].Name)
	}
	for _, unique := range m.plan.Table.Unique {
		if sameNames(unique, key) {
			return slices.Clone(unique)
		}
	}
	return key
}

func (v *vanished) keyColumns() []Column {
	var columns []Column
	for _, c := range v.plan.Columns[:len(v.plan.Columns)-1] {
		columns = append(columns, c.Column)
	}
	return columns
}

// values reads the texts of a row.
func (v *vanished) values(texts []string) ([]Value, error) {
	values := make([]Value, len(texts))
	for i, text := range texts {
		var err error
		if values[i], err = v.reads[i](v.text(i, text)); err != nil {
			return nil, fmt.Errorf("column %q of a row holds what no scan has written: %w", v.plan.Columns[i].Name, err)
		}
	}
	return values, nil
}

// text is what a column's text was before the column padded it.
func (v *vanished) text(column int, text string) string {
	if c := &v.plan.Columns[column]; c.Kind == KindText && c.Padded {
		return strings.TrimRight(text, " ")
	}
	return text
}

// record is as much of its record as a row tells.
func (v *vanished) record(texts []string, inputs int) Record {
	r := Record{Inputs: make([]Raw, inputs), Gone: true}
	for i, text := range texts {
		r.Inputs[v.inputs[i]] = Raw{Text: v.text(i, text), OK: true}
	}
	return r
}

// row deletes the row that tells the record.
func (v *vanished) row(r Record) (Row, error) {
	texts := make([]string, len(v.inputs))
	for i, input := range v.inputs {
		texts[i] = r.Inputs[input].Text
	}
	values, err := v.values(texts)
	return Row{Values: values, Delete: true, Record: r}, err
}

func (v *vanished) compare(a, b *Row) int {
	for i := range a.Values {
		if c := compareValues(a.Values[i], b.Values[i]); c != 0 {
			return c
		}
	}
	return 0
}
