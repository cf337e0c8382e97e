package flush

import (
	"errors"
	"maps"
	"slices"
)

// Check says what is wrong with a mapping whatever its table is; create says that the
// table is made from it if it is missing. It reports every problem at once. What depends
// on the table Compile says.
func (s MappingSpec) Check(available Inputs, create bool) error {
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

// checkColumn compiles a column as if the table's were of its type and took everything.
func (c *compiler) checkColumn(name string, spec ColumnSpec) {
	if spec.From == "" {
		spec.From = name
	}
	target := Column{Name: name, Nullable: true}
	c.checkInput(target, spec)
	c.setNull(&column{key: slices.Contains(c.key, name)}, target, spec)
	kind, known := kindByName(spec.Type)
	if spec.Type == "" {
		kind, known = KindTimestamp, true // it takes every format that a date takes
	}
	switch {
	case !known:
		c.problem(name, "has the unknown type %q: it is one of %s", spec.Type, list(typeNames()))
	case spec.Format != "" && (kind == KindTimestamp || kind == KindDate):
		if err := checkFormat(kind, spec.Format); err != nil {
			c.problem(name, "has a wrong format: %w", err)
		}
	}
}
