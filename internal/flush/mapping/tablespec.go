package mapping

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"baton/internal/flush/row"
)

// NewTableSpec describes the table for a mapping. Every column needs a type, unless the source defines it. NewTableSpec reports all
// problems at once.
func NewTableSpec(spec Spec, available row.Inputs) (row.TableSpec, error) {
	t := row.TableSpec{Name: spec.Table, Key: spec.Key, Unique: spec.DedupeKey}
	if len(spec.Columns) == 0 {
		return t, fmt.Errorf("table %q: `schema: create` needs `columns`, each with its type: names of fields alone do not define a table",
			spec.Table)
	}
	specs := maps.Clone(spec.Columns)
	if spec.Generation != "" {
		specs[spec.Generation] = ColumnSpec{From: row.InputGeneration, Place: math.MaxInt}
	}
	key := slices.Concat(spec.Key, spec.DedupeKey)
	names := slices.Clone(spec.Key)
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(specs[a].Place, specs[b].Place) })
	var problems []error
	for _, name := range names {
		s, mapped := specs[name]
		c, err := newColumn(name, s, slices.Contains(key, name), available)
		if !mapped {
			err = errors.New("of `key` is not among the `columns`: add it, with its type")
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("table %q: column %q %w", spec.Table, name, err))
		}
		t.Columns = append(t.Columns, c)
	}
	return t, errors.Join(problems...)
}

// newColumn returns the table's column for a specification.
func newColumn(name string, s ColumnSpec, key bool, available row.Inputs) (row.Column, error) {
	c := row.Column{Name: name, Nullable: !key && s.Missing != "error" || s.Empty == "null"}
	adds := s.Op == "add" || s.Op == "" && s.From == row.InputValue && available.Guarantee.Once() && !available.Fields
	switch {
	case s.Type != "":
		var ok bool
		if c.Kind, ok = row.KindByName(s.Type); !ok {
			return c, fmt.Errorf("has the unknown type %q: use one of %s", s.Type, list(row.KindNames()))
		}
	case s.From == row.InputGeneration:
		c.Kind = row.KindInteger
	case s.From == row.InputScore:
		c.Kind = row.KindFloat
	case adds:
		c.Kind = row.KindInteger
	case slices.Contains([]string{row.InputID, row.InputKey, row.InputMember}, s.From):
		c.Kind = row.KindText
	default:
		return c, fmt.Errorf("has no type, but `schema: create` needs one: set `type` to one of %s", list(row.KindNames()))
	}
	if adds || s.From == row.InputGeneration {
		c.Nullable, c.Default = false, true // a sum begins at 0
	}
	return c, nil
}
