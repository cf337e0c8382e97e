package flush

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// TableSpec is a table that is to be made for a job (`schema: create`): what its
// mapping says, and nothing else.
type TableSpec struct {
	Name string
	// Columns are those of the key first, then the others by name. They have a name and
	// a kind, and whether they may be NULL. One that has a default is a number, and 0.
	Columns []Column
	Key     []string // the primary key; none: there is none
	Unique  []string // another unique index, for the dedupe key; none: there is none
}

// TableCreator is a Sink that can make tables.
type TableCreator interface {
	// DescribeTable returns the statement by which CreateTable would make a table, and
	// what the catalogue would say of it then. It asks nobody.
	DescribeTable(t TableSpec) (ddl string, table Table, err error)
	// CreateTable makes the table, committed when it returns. It does nothing if there is
	// one of that name.
	CreateTable(ctx context.Context, t TableSpec) error
}

// NewTableSpec says which table a mapping wants. Every column needs a type, unless the
// source says which it is. It reports every problem at once.
func NewTableSpec(spec MappingSpec, available Inputs) (TableSpec, error) {
	t := TableSpec{Name: spec.Table, Key: spec.Key, Unique: spec.DedupeKey}
	if len(spec.Columns) == 0 {
		return t, fmt.Errorf("table %q: `schema: create` needs `columns`, each with its type: names of fields alone make no table", spec.Table)
	}
	specs := maps.Clone(spec.Columns)
	if spec.Generation != "" {
		specs[spec.Generation] = ColumnSpec{From: InputGeneration}
	}
	key := slices.Concat(spec.Key, spec.DedupeKey)
	names := slices.Clone(spec.Key)
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
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

// newColumn is the column that takes what a specification says.
func newColumn(name string, s ColumnSpec, key bool, available Inputs) (Column, error) {
	c := Column{Name: name, Nullable: !key && s.Missing != "error" || s.Empty == "null"}
	adds := s.Op == "add" || s.Op == "" && s.From == InputValue && available.Ledger && !available.Fields
	switch {
	case s.Type != "":
		var ok bool
		if c.Kind, ok = kindByName(s.Type); !ok {
			return c, fmt.Errorf("has the unknown type %q: it is one of %s", s.Type, list(typeNames()))
		}
	case s.From == InputGeneration:
		c.Kind = KindInteger
	case s.From == InputScore:
		c.Kind = KindFloat
	case adds:
		c.Kind = KindInteger
	case slices.Contains([]string{InputID, InputKey, InputMember}, s.From):
		c.Kind = KindText
	default:
		return c, fmt.Errorf("has no type, and `schema: create` makes no guess: set `type` to one of %s", list(typeNames()))
	}
	if adds || s.From == InputGeneration {
		c.Nullable, c.Default = false, true // a sum begins at 0
	}
	return c, nil
}
