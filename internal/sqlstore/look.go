package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// looker is a session that can read rows of texts. A null is an empty one. The text
// has a ? for each argument, and none elsewhere.
type looker interface {
	look(ctx context.Context, text string, args []any, each func(row []string) error) error
}

// tableLess is a database that can tell that a query has named a table which is not
// there.
type tableLess interface{ lacksTable(err error) bool }

func (t *pgSession) look(ctx context.Context, text string, args []any, each func(row []string) error) error {
	ctx, cancel := context.WithTimeout(ctx, t.db.store.limits.trip)
	defer cancel()
	params := make([][]byte, len(args))
	for i, arg := range args {
		params[i] = fmt.Append(nil, arg)
	}
	reader := t.pg.ExecParams(ctx, numbered(text), params, nil, nil, nil)
	var failed error
	for failed == nil && reader.NextRow() {
		row := make([]string, len(reader.Values()))
		for i, v := range reader.Values() {
			row[i] = string(v)
		}
		failed = each(row)
	}
	_, err := reader.Close()
	return errors.Join(failed, err)
}

// numbered replaces ? by $1, $2 ...
func numbered(text string) string {
	var b strings.Builder
	for i, part := range strings.Split(text, "?") {
		if i > 0 {
			b.WriteString("$" + strconv.Itoa(i))
		}
		b.WriteString(part)
	}
	return b.String()
}

func (p *postgres) lacksTable(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "42P01"
}

func (s *sqlSession) look(ctx context.Context, text string, args []any, each func(row []string) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.db.store.limits.trip)
	defer cancel()
	statement, err := s.prepare(ctx, text)
	if err != nil {
		return err
	}
	rows, err := statement.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer rows.Close() // Err tells what went wrong
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		values := make([]sql.NullString, len(columns))
		targets := make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		row := make([]string, len(columns))
		for i := range values {
			row[i] = values[i].String
		}
		if err := each(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (d mysqlDB) lacksTable(err error) bool { return mysqlNumber(err) == 1146 }

func (d sqliteDB) lacksTable(err error) bool { return strings.Contains(err.Error(), "no such table") }
