package sql

import (
	"fmt"
	"slices"
	"strings"

	"baton/internal/flush"
	"baton/internal/text"
)

// Quote is the quotation mark for identifiers in a kind of database: " or `.
type Quote string

// split splits schema.table into its parts. A part in quotes is taken literally, so that a name may contain a dot.
func (q Quote) split(name string) []string {
	var parts []string
	var part strings.Builder
	quoted := false
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case c == q[0] && quoted && i+1 < len(name) && name[i+1] == q[0]:
			part.WriteByte(c)
			i++
		case c == q[0]:
			quoted = !quoted
		case c == '.' && !quoted:
			parts = append(parts, part.String())
			part.Reset()
		default:
			part.WriteByte(c)
		}
	}
	return append(parts, part.String())
}

// Schema splits a table's name into schema and table. The schema may be "".
func (q Quote) Schema(name string) (schema, table string) {
	parts := q.split(name)
	last := len(parts) - 1
	return strings.Join(parts[:last], "."), parts[last]
}

// Join joins the parts of a name, as the inverse of split. It quotes only parts that split would otherwise misread.
func (q Quote) Join(parts ...string) string {
	var out []string
	for _, p := range parts {
		if strings.ContainsAny(p, string(q)+".") {
			p = q.Ident(p)
		}
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, ".")
}

// Ident quotes one identifier. Every identifier from a configuration passes through Ident or Table.
func (q Quote) Ident(name string) string {
	return string(q) + strings.ReplaceAll(name, string(q), string(q+q)) + string(q)
}

// Table quotes a table's name part by part.
func (q Quote) Table(name string) string {
	parts := q.split(name)
	for i := range parts {
		parts[i] = q.Ident(parts[i])
	}
	return strings.Join(parts, ".")
}

// similar returns the names that the user may have meant: names that differ from want in at most two letters, or only in case.
func similar(want string, names []string) []string {
	var near []string
	for _, name := range names {
		if strings.EqualFold(name, want) || len(want) > 3 && text.Edits(strings.ToLower(name), strings.ToLower(want)) <= 2 {
			near = append(near, name)
		}
	}
	slices.Sort(near)
	return near[:min(len(near), 5)]
}

// NoTable returns the error about a missing table, with similar names.
func NoTable(name string, names []string) error {
	hint := "create it, or correct the job's `table`"
	if near := similar(name, names); len(near) > 0 {
		hint = fmt.Sprintf("did you mean %s?", near[0])
	}
	return fmt.Errorf("%w: %q: %s", flush.ErrNoTable, name, hint)
}
