package mapping

import (
	"slices"
	"strings"

	"baton/internal/flush/row"
)

// ColumnView shows how a column is written.
type ColumnView struct {
	Name    string `json:"name"`
	DBType  string `json:"db_type"`
	From    string `json:"from"`
	Read    string `json:"read"` // the type that the text is read as
	Op      string `json:"op"`
	Missing string `json:"missing"` // the treatment of a missing input: "error", "null", "keep", or "default" (the column's default)
	Empty   string `json:"empty"`   // how an empty text is written: "null" or "as it is"
	Key     bool   `json:"key"`
}

// Views describes the columns to write, in the order of the plan.
func (m *Mapping) Views() []ColumnView {
	views := make([]ColumnView, len(m.columns))
	for i, c := range m.columns {
		views[i] = c.view(m.plan.Columns[i], m.plan.Inputs)
	}
	return views
}

// Kept returns the names of the columns in which a row keeps its value if the record lacks the column's field.
func (m *Mapping) Kept() (names []string) {
	for i := range m.columns {
		if m.columns[i].missingKeep {
			names = append(names, m.columns[i].name)
		}
	}
	return names
}

// Resets returns the names of the columns that are set to their default if the record lacks the column's field.
func (m *Mapping) Resets() (names []string) {
	for i := range m.columns {
		if m.columns[i].constant != nil {
			names = append(names, m.columns[i].name)
		}
	}
	return names
}

// Resolved returns everything that decides how records become rows: the settings in force, and the kinds of the table's columns. Resolved
// leaves out settings that have their default value. So a later version of baton can add a setting with a default without changing this
// result.
func (m *Mapping) Resolved(s Spec) any {
	type resolved struct {
		ColumnView
		Kind   string
		Format string `json:",omitempty"`
	}
	columns := make([]resolved, len(m.columns))
	for i, view := range m.Views() {
		view.DBType = "" // the length of a text column does not change the rows
		columns[i] = resolved{view, m.plan.Columns[i].Kind.String(), s.Columns[view.Name].Format}
	}
	slices.SortFunc(columns, func(a, b resolved) int { return strings.Compare(a.Name, b.Name) })
	return struct {
		Columns    []resolved
		Mode       Mode              `json:",omitempty"`
		DeleteWhen map[string]string `json:",omitempty"`
	}{columns, m.mode, s.DeleteWhen}
}

func (c *column) view(plan row.PlanColumn, inputs []string) ColumnView {
	shown := ColumnView{
		Name: c.name, DBType: plan.DBType, From: inputs[c.input], Read: c.what, Op: "set", Missing: "error", Empty: "as it is", Key: c.key,
	}
	if c.op == row.OpAdd {
		shown.Op = "add"
	}
	switch {
	case c.constant != nil:
		shown.Missing = "default"
	case c.missingKeep:
		shown.Missing = "keep"
	case c.missingNull:
		shown.Missing = "null"
	}
	if c.emptyNull {
		shown.Empty = "null"
	}
	return shown
}

// Show formats the values of a row, one for each column; nil means NULL. For a row to be deleted it shows only the key.
func (m *Mapping) Show(row row.Row) []*string {
	values := make([]*string, len(row.Values))
	for i, value := range row.Values {
		if row.Delete && !m.columns[i].key {
			continue
		}
		if text, ok := value.Show(); ok {
			values[i] = &text
		}
	}
	return values
}
