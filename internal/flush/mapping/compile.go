package mapping

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"baton/internal/flush/row"
)

// Compile matches the specification of a mapping with the catalogue of its table. It reports all problems at once, each with table, column
// and remedy.
func Compile(spec Spec, table row.Table, available row.Inputs) (*Mapping, error) {
	c := &compiler{spec: spec, table: table, available: available, inputs: map[string]int{}}
	c.setMode()
	specs := c.columns()
	c.checkNames(specs)
	for _, target := range table.Columns {
		if s, ok := specs[target.Name]; ok {
			c.add(target, s)
		} else if c.m.mode != ModeDelete && !target.Nullable && !target.Default && !target.Generated &&
			!slices.Contains(c.key, target.Name) {
			c.problem(target.Name, "is NOT NULL, has no default and is not mapped: add it to `columns`, or give it a default")
		}
	}
	c.checkKey(specs)
	c.checkGeneration()
	c.checkValue()
	c.setDeletes()
	if len(c.problems) > 0 {
		return nil, errors.Join(c.problems...)
	}
	c.m.plan.Table = table
	return &c.m, nil
}

// compiler collects the parts of the mapping and the problems.
type compiler struct {
	spec      Spec
	table     row.Table
	available row.Inputs
	inputs    map[string]int // input name -> index into Record.Inputs
	key       []string       // the table's key, or the dedupe key
	m         Mapping
	problems  []error
}

func (c *compiler) problem(column, format string, args ...any) {
	c.problems = append(c.problems, fmt.Errorf("table %q: column %q "+format, append([]any{c.spec.Table, column}, args...)...))
}

// columns returns the columns of the specification. If the specification has none, columns returns the columns that have the name of an
// input.
func (c *compiler) columns() map[string]ColumnSpec {
	specs := maps.Clone(c.spec.Columns)
	if specs == nil {
		specs = c.byName()
	}
	if c.spec.Generation != "" {
		specs[c.spec.Generation] = ColumnSpec{From: row.InputGeneration}
	}
	if c.m.mode == ModeDelete {
		maps.DeleteFunc(specs, func(name string, _ ColumnSpec) bool { return !slices.Contains(c.key, name) })
	}
	return specs
}

// byName maps every writable column to the input that has the column's name.
func (c *compiler) byName() map[string]ColumnSpec {
	specs := map[string]ColumnSpec{}
	for _, column := range c.table.Columns {
		if column.Generated && !slices.Contains(c.key, column.Name) {
			continue
		}
		if c.available.Fields || slices.Contains(c.available.Names, column.Name) {
			specs[column.Name] = ColumnSpec{From: column.Name}
		}
	}
	return specs
}

// checkNames refuses mapped columns that the table does not have.
func (c *compiler) checkNames(specs map[string]ColumnSpec) {
	names := columnNames(c.table.Columns)
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		if !slices.Contains(names, name) {
			c.problem(name, "does not exist: correct `columns`, or add it to the table (it has %s)", list(names))
		}
	}
}

// add compiles one column, unless the column has a problem.
func (c *compiler) add(target row.Column, spec ColumnSpec) {
	before := len(c.problems)
	if spec.From == "" {
		spec.From = target.Name
	}
	c.checkGenerated(target)
	c.checkInput(target, spec)
	out := column{
		name:  target.Name,
		key:   slices.Contains(c.key, target.Name),
		named: slices.Contains(c.available.Names, spec.From) && spec.From != row.InputScore,
	}
	c.setType(&out, &target, spec)
	c.setNull(&out, target, spec)
	if len(c.problems) > before {
		return
	}
	out.input = c.input(spec.From)
	if out.key && c.available.Spelled {
		out.read = spelled(out.read, target.Kind)
	}
	if out.key {
		c.m.plan.Key = append(c.m.plan.Key, len(c.m.columns))
	}
	c.m.adds = c.m.adds || out.op == row.OpAdd
	c.m.columns = append(c.m.columns, out)
	c.m.plan.Columns = append(c.m.plan.Columns, row.PlanColumn{Column: target, Op: out.op})
}

// checkInput refuses an input that the source cannot deliver.
func (c *compiler) checkInput(target row.Column, spec ColumnSpec) {
	if slices.Contains(c.available.Names, spec.From) {
		return
	}
	if why := c.available.Lacks[spec.From]; why != "" {
		c.problem(target.Name, "is made from %q, which this source does not have: %s", spec.From, why)
		return
	}
	if !c.available.Fields || strings.HasPrefix(spec.From, "$") {
		c.problem(target.Name, "is made from %q, which this source does not have: it has %s%s", spec.From, list(c.available.Names),
			c.orFields())
	}
}

func (c *compiler) orFields() string {
	if c.available.Fields {
		return " and the fields of the hash"
	}
	return ""
}

// input returns the index of the input with that name. It adds the input if necessary.
func (c *compiler) input(name string) int {
	i, ok := c.inputs[name]
	if !ok {
		i = len(c.m.plan.Inputs)
		c.inputs[name] = i
		c.m.plan.Inputs = append(c.m.plan.Inputs, name)
	}
	return i
}

// setType chooses the operation and the reader of a column. If the column is of KindOther, it gets the kind that the setting "type" names.
func (c *compiler) setType(out *column, target *row.Column, spec ColumnSpec) {
	as := target.Kind
	if spec.Type != "" {
		var ok bool
		if as, ok = row.KindByName(spec.Type); !ok {
			c.problem(target.Name, "has the unknown type %q: use one of %s", spec.Type, list(row.KindNames()))
			return
		}
	}
	c.setOp(out, *target, spec)
	if out.what = as.String(); as == row.KindOther && target.DBType != "" {
		out.what = target.DBType
	}
	if spec.Format != "" {
		if as != row.KindTimestamp && as != row.KindDate {
			c.problem(target.Name, "is a %s, which has no format: remove `format`, or set `type` to timestamp or date", as)
		} else if err := row.CheckFormat(as, spec.Format); err != nil {
			c.problem(target.Name, "has a wrong format: %w", err)
		}
	}
	var ok bool
	if out.read, ok = row.NewReader(as, *target, out.op, spec.Format); !ok {
		c.problem(target.Name, "is a %s (%s) and cannot hold a %s: remove `type`, or change the column", target.Kind, target.DBType, as)
	}
	if target.Kind == row.KindOther {
		target.Kind = as
	}
}

func (c *compiler) setOp(out *column, target row.Column, spec ColumnSpec) {
	switch {
	case spec.Op == "add", spec.Op == "" && spec.From == row.InputValue && c.sums():
		out.op = row.OpAdd
	case spec.Op != "" && spec.Op != "set":
		c.problem(target.Name, "has the unknown op %q: use set or add", spec.Op)
	}
	if out.op != row.OpAdd {
		return
	}
	switch {
	case !c.available.Guarantee.Once():
		c.problem(target.Name, "has `op: add`, but this source delivers present values, not increments: use `op: set`")
	case out.key:
		c.problem(target.Name, "is part of the key and cannot be added to: use `op: set`")
	case target.Kind != row.KindInteger && target.Kind != row.KindFloat && target.Kind != row.KindNumeric:
		c.problem(target.Name, "is a %s (%s) and cannot be added to: make it a number, or use `op: set`", target.Kind, target.DBType)
	case spec.Type != "" && spec.Type != target.Kind.String():
		c.problem(target.Name, "has `op: add` and `type: %s`, but an increment must have the type of the column (%s): remove `type`",
			spec.Type, target.Kind)
	}
}

// setNull decides how a missing text and an empty text are written.
func (c *compiler) setNull(out *column, target row.Column, spec ColumnSpec) {
	switch spec.Missing {
	case "":
		if target.Default && !out.key && out.op != row.OpAdd {
			out.constant = c.constant(target)
			out.missingKeep = out.constant == nil
		} else {
			out.missingNull = target.Nullable && !out.key
		}
	case "error":
	case "null":
		out.missingNull = true
	case "keep":
		out.missingKeep = out.op != row.OpAdd
		out.missingNull = !out.missingKeep // so that nothing is added
	default:
		c.problem(target.Name, "has the unknown value `missing: %s`: use error, null or keep", spec.Missing)
	}
	switch spec.Empty {
	case "":
	case "null":
		out.emptyNull = true
	default:
		c.problem(target.Name, "has the unknown value `empty: %s`: use \"null\", or remove `empty`", spec.Empty)
	}
	explicit := spec.Missing == "null" || spec.Missing == "keep" || spec.Empty == "null"
	switch {
	case explicit && out.key:
		c.problem(target.Name, "is part of the key, which must not be NULL: remove `missing` and `empty`")
	case (spec.Missing == "null" || spec.Empty == "null") && !target.Nullable && out.op != row.OpAdd:
		c.problem(target.Name, "is NOT NULL, so `missing` and `empty` cannot be null: remove them, or allow NULL in the column")
	}
}

// constant returns the value to write into the column if a record lacks the field: the column's default. So equal records make equal rows,
// whatever values the rows had before. It returns nil if the default is not constant, or the source delivers increments; then the row keeps
// its value.
func (c *compiler) constant(target row.Column) *row.Value {
	if c.available.Guarantee.Once() || !target.Constant.OK {
		return nil
	}
	read, ok := row.NewReader(target.Kind, target, row.OpSet, "")
	if !ok {
		return nil
	}
	value, err := read(target.Constant.Text)
	if err != nil {
		return nil
	}
	return &value
}

// checkKey refuses a key that does not identify rows, or for which the table has no unique index.
func (c *compiler) checkKey(specs map[string]ColumnSpec) {
	names := columnNames(c.table.Columns)
	if len(c.key) == 0 && c.m.mode == ModeInsert {
		return
	}
	if len(c.key) == 0 {
		c.problems = append(c.problems, fmt.Errorf("table %q: no `key` is given: name the columns of a unique index (it has %s)",
			c.spec.Table, c.uniques()))
		return
	}
	for i, name := range c.key {
		_, mapped := specs[name]
		switch {
		case slices.Contains(c.key[:i], name):
			c.problem(name, "is named twice in `key`")
		case !slices.Contains(names, name):
			if !mapped { // otherwise the problem was already reported
				c.problem(name, "of `key` does not exist: correct `key` (the table has %s)", list(names))
			}
		case !mapped:
			c.problem(name, "of `key` is not mapped: add it to `columns`, made from one of %s%s", list(c.available.Names), c.orFields())
		}
	}
	for _, target := range c.table.Columns {
		if slices.Contains(c.key, target.Name) && target.Folds != "" {
			c.problem(target.Name, "of `%s` treats different texts as equal because of %s, so a record could overwrite or "+
				"delete the row of "+
				"another record: %s",
				c.keyName(), target.Folds, target.Exact)
		}
	}
	for _, unique := range c.table.Unique {
		if sameNames(unique, c.key) {
			return
		}
	}
	c.problems = append(c.problems, fmt.Errorf("table %q: no unique index has exactly the columns of `key` (%s), so baton could not find "+
		"a row again: set another key (the table has %s), or create a unique index on (%s)",
		c.spec.Table, list(c.key), c.uniques(), list(c.key)))
}

// keyName returns the name of the setting that defines the key.
func (c *compiler) keyName() string {
	if c.m.plan.Keep {
		return "dedupe_key"
	}
	return "key"
}

// checkValue refuses a mapping that would lose the sums of counters.
func (c *compiler) checkValue() {
	_, used := c.inputs[row.InputValue]
	if !used && c.sums() && len(c.problems) == 0 && slices.Contains(c.available.Names, row.InputValue) {
		c.problems = append(c.problems, fmt.Errorf("table %q: no column receives %s, so the counts would be lost: add one to "+
			"`columns`, such as "+
			"`views: {from: %s, op: add}`",
			c.spec.Table, row.InputValue, row.InputValue))
	}
}

func (c *compiler) uniques() string {
	var all []string
	for _, unique := range c.table.Unique {
		all = append(all, "["+list(unique)+"]")
	}
	return list(all)
}

func columnNames(columns []row.Column) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return names
}

func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// sums reports whether the source delivers increments.
func (c *compiler) sums() bool { return c.available.Guarantee.Once() && !c.available.Fields }

// setMode chooses the mode and the key of the plan.
func (c *compiler) setMode() {
	c.m.mode, c.key = c.spec.Mode, c.spec.Key
	if c.m.mode == "" {
		c.m.mode = ModeUpsert
		if len(c.spec.Key) == 0 && c.available.Guarantee.Once() && !c.sums() {
			c.m.mode = ModeInsert
		}
	}
	switch c.m.mode {
	case ModeUpsert, ModeReplace, ModeDelete:
		if len(c.spec.DedupeKey) > 0 {
			c.say("`dedupe_key` is only for `mode: insert`; in this mode `key` identifies the rows: remove `dedupe_key`")
		}
	case ModeInsert:
		if len(c.spec.Key) > 0 {
			c.say("`key` is not for `mode: insert`: remove it, or rename it to `dedupe_key` to skip rows that exist already")
		}
		c.key = c.spec.DedupeKey
		c.m.plan.Keep = len(c.key) > 0
		if !c.available.Guarantee.Once() && !c.m.plan.Keep {
			c.say("`mode: insert` needs a `dedupe_key` here, because this source may deliver a record twice")
		}
	default:
		c.say("`mode: %s` is unknown: use upsert, insert, replace or delete", c.m.mode)
	}
}

// say adds a problem that concerns the whole table.
func (c *compiler) say(format string, args ...any) {
	c.problems = append(c.problems, fmt.Errorf("table %q: "+format, append([]any{c.spec.Table}, args...)...))
}

// setDeletes finds the inputs whose values mark a deletion.
func (c *compiler) setDeletes() {
	for _, name := range slices.Sorted(maps.Keys(c.spec.DeleteWhen)) {
		if !c.available.Fields && !slices.Contains(c.available.Names, name) {
			c.say("`delete_when` asks for %q, which this source does not have: it has %s", name, list(c.available.Names))
			continue
		}
		c.m.deletes = append(c.m.deletes, condition{input: c.input(name), text: c.spec.DeleteWhen[name]})
	}
	if len(c.m.deletes) > 0 && c.m.mode == ModeInsert {
		c.say("`delete_when` deletes rows by their `key`, but `mode: insert` has no `key`: use upsert or replace")
	}
}
