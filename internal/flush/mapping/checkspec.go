package mapping

import (
	"errors"
	"maps"
	"slices"

	"baton/internal/flush/row"
)

// Check lists all problems of a mapping that do not depend on its table; Compile finds the others. If create is true, a missing table is
// created from the mapping.
func (s Spec) Check(available row.Inputs, create bool) error {
	if create {
		if _, err := NewTableSpec(s, available); err != nil {
			return err
		}
	}
	c := &compiler{spec: s, available: available, inputs: map[string]int{}}
	c.setMode()
	for _, name := range slices.Sorted(maps.Keys(s.Columns)) {
		c.checkColumn(name, s.Columns[name])
	}
	for _, name := range c.key {
		if _, mapped := s.Columns[name]; !mapped && len(s.Columns) > 0 {
			c.problem(name, "of `key` is not among the `columns`: add it, made from one of %s%s", list(available.Names), c.orFields())
		}
	}
	c.checkGeneration()
	c.setDeletes()
	return errors.Join(c.problems...)
}

// checkColumn checks a column without its table, as if the table's column had the type in the settings, and no limits.
func (c *compiler) checkColumn(name string, spec ColumnSpec) {
	if spec.From == "" {
		spec.From = name
	}
	target := row.Column{Name: name, Nullable: true}
	c.checkInput(target, spec)
	c.setNull(&column{key: slices.Contains(c.key, name)}, target, spec)
	kind, known := row.KindByName(spec.Type)
	if spec.Type == "" {
		kind, known = row.KindTimestamp, true // a timestamp accepts every format that a date accepts
	}
	switch {
	case !known:
		c.problem(name, "has the unknown type %q: use one of %s", spec.Type, list(row.KindNames()))
	case spec.Format != "" && (kind == row.KindTimestamp || kind == row.KindDate):
		if err := row.CheckFormat(kind, spec.Format); err != nil {
			c.problem(name, "has a wrong format: %w", err)
		}
	}
}

// checkGeneration refuses a generation column that cannot store the number of a pass.
func (c *compiler) checkGeneration() {
	name := c.spec.Generation
	if name == "" {
		return
	}
	if !slices.Contains(c.available.Names, row.InputGeneration) {
		c.problem(name, "is the `generation`, but only a source of type scan has a generation: remove `generation`")
	}
	if spec, ok := c.spec.Columns[name]; ok && spec.From != row.InputGeneration {
		c.problem(name, "is the `generation`, but `columns` gives it another value: remove it from `columns`, or remove `generation`")
	}
	if slices.Contains(c.key, name) {
		c.problem(name, "is the `generation` and cannot be part of the key, because its value changes with every pass")
	}
	i := slices.IndexFunc(c.table.Columns, func(column row.Column) bool { return column.Name == name })
	if i < 0 {
		return // already reported
	}
	if column := c.table.Columns[i]; column.Kind != row.KindInteger || column.Bits != 64 {
		c.problem(name, "is the `generation`, which is a time in microseconds, but its type is %s (%s): make it an integer of 64 bits, "+
			"such as bigint",
			column.Kind, column.DBType)
	}
}
