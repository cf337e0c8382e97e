package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"baton/internal/flush/sql"
)

// statement is one of the statements that are sent together. If it has no name, it is sent as text.
type statement struct {
	text    string
	name    string
	params  [][]byte
	formats []int16
	task    int // index of its task
	last    bool
	// writes is the number of rows to write, if the statement returns how many rows it has written.
	writes int
	// temporary marks a statement that creates a temporary object and writes no row. This user may lack the right to create such objects.
	temporary bool
	// deletes means that the statement returns how many rows it deleted without inserting them again.
	deletes bool
	// load, if set, is called instead of sending the text. It does its work in one round trip, together with the statements in the argument
	// before.
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

// fixed returns the statements for a task that runs one of baton's own queries. After the statement that begins a transaction, it adds the
// statement that makes the transaction's settings.
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

// newStatement returns a statement to be prepared. Its parameters are sent as text, so that the server parses them as the types of their
// columns.
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
			s.params = append(s.params, fmt.Append([]byte{}, arg)) // not nil, because an empty text is not NULL
		}
	}
	return s
}

// numbered replaces each "?" outside of quotes by a numbered parameter: "$1", "$2" and so on.
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

// prepare prepares the statements on this connection. prepare needs a round trip only the first time.
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

// forget deallocates the statements that baton has prepared on this connection. It is called when there are too many, because each
// combination of absent columns needs another statement.
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
