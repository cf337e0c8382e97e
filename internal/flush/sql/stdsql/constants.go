package stdsql

import (
	"context"
	dbsql "database/sql"
	"regexp"
	"strings"
	"time"

	"baton/internal/flush/row"
)

// number and bits match forms of literals that all databases have in common.
const (
	number = `[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?`
	bits   = `[xXbB]'[0-9A-Fa-f]*'|0[xX][0-9A-Fa-f]+`
)

// Literals returns an expression that matches the literals of a database. The argument quoted is an expression that matches a text in
// quotes.
func Literals(quoted string) *regexp.Regexp {
	return regexp.MustCompile(`^(` + quoted + `|` + number + `|` + bits + `|(?i:true|false))$`)
}

// Evaluate replaces the literals of constant defaults by their values. The function spell returns an SQL expression for the text of a
// literal in a column.
func Evaluate(ctx context.Context, db *dbsql.DB, columns []row.Column, spell func(c row.Column, literal string) string) error {
	var expressions []string
	for _, c := range columns {
		if c.Constant.OK {
			expressions = append(expressions, spell(c, c.Constant.Text))
		}
	}
	if len(expressions) == 0 {
		return nil
	}
	texts := make([]dbsql.NullString, len(expressions))
	to := make([]any, len(texts))
	for i := range texts {
		to[i] = &texts[i]
	}
	if err := db.QueryRowContext(ctx, "SELECT "+strings.Join(expressions, ", ")).Scan(to...); err != nil {
		return err
	}
	for i := range columns {
		c := &columns[i]
		if !c.Constant.OK {
			continue
		}
		c.Constant = row.Raw{Text: texts[0].String, OK: texts[0].Valid}
		texts = texts[1:]
		if c.Kind == row.KindTimestamp && c.Constant.OK {
			t, err := time.Parse("2006-01-02 15:04:05", c.Constant.Text)
			c.Constant = row.Raw{Text: t.Format(time.RFC3339Nano), OK: err == nil}
		}
	}
	return nil
}
