package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"baton/internal/flush/sql"
)

// statement is one statement of a run. Without a name it is sent as text.
type statement struct {
	text    string
	name    string
	params  [][]byte
	formats []int16
	task    int // index of its task
	last    bool
	// writes is the number of rows to write, if the statement returns the number written.
	writes int
	// temporary: it creates something temporary, for which this user may lack the right, and writes no row.
	temporary bool
	// deletes: the statement returns how many rows it deleted for good: they are not inserted again.
	deletes bool
	// load, if set, is done instead, on its own, in one round trip with the statements before it.
	load func(ctx context.Context, before string) error
}

// send sends statements, without waiting for an answer.
func (t *session) send(pipe *pgconn.Pipeline, statements ...statement) {
	for i := range statements {
		if s := &statements[i]; s.name != "" && !t.pooled {
			pipe.SendQueryPrepared(s.name, s.params, s.formats, nil)
		} else {
			pipe.SendQueryParams(s.text, s.params, nil, s.formats, nil)
		}
	}
}

// fixed spells out one of our own queries. A transaction begins with its settings.
func (t *session) fixed(k sql.Task) []statement {
	text := t.db.queries[k.Query]
	switch {
	case k.Query == "begin":
		return []statement{{text: text}, named(t.db.Settings())}
	case len(k.Args) == 0:
		return []statement{{text: text}}
	}
	return []statement{newStatement(text, k.Args)}
}

// newStatement is a prepared statement. Its parameters are sent as text, so that the
// server reads them as their columns' types.
func newStatement(text string, args []any) statement {
	text = numbered(text)
	s := statement{text: text, name: nameOf(text)}
	for _, arg := range args {
		switch arg := arg.(type) {
		case nil:
			s.params = append(s.params, nil)
		case []byte:
			s.params = append(s.params, fmt.Appendf(nil, `\x%x`, arg))
		default:
			s.params = append(s.params, fmt.Append([]byte{}, arg)) // an empty text is no NULL
		}
	}
	return s
}

// numbered replaces each ? outside of quotes by $1, $2 ...
func numbered(text string) string {
	var b strings.Builder
	quoted, n := byte(0), 0
	for i := range len(text) {
		c := text[i]
		switch {
		case quoted != 0:
			if c == quoted {
				quoted = 0
			}
		case c == '"' || c == '\'':
			quoted = c
		case c == '?':
			n++
			b.WriteString("$" + strconv.Itoa(n))
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// prepare prepares the statements on this connection. It costs a round trip only the first time.
func (t *session) prepare(ctx context.Context, statements []statement) error {
	if t.pooled {
		return nil
	}
	known := t.pg.CustomData()
	if len(known) > sql.MaxStatements {
		if err := t.forget(ctx, known); err != nil {
			return err
		}
	}
	for i := range statements {
		name := statements[i].name
		if name == "" || known[name] != nil {
			continue
		}
		if _, err := t.pg.Prepare(ctx, name, statements[i].text, nil); err != nil {
			return err
		}
		known[name] = true
	}
	return nil
}

// forget deallocates our prepared statements: rows may leave out other columns each
// time, and each time it is another statement.
func (t *session) forget(ctx context.Context, known map[string]any) error {
	var all strings.Builder
	for name := range known {
		if strings.HasPrefix(name, prepared) {
			all.WriteString("DEALLOCATE " + name + ";")
			delete(known, name)
		}
	}
	_, err := t.pg.Exec(ctx, all.String()).ReadAll()
	return err
}
