package sqlstore

import (
	"context"
	"encoding/hex"

	"baton/internal/flush"
)

// readSession is a session that rows are read with.
type readSession interface {
	session
	read(ctx context.Context, text string, args []any) ([][]any, error)
	// arg is a value as an argument of read.
	arg(v *flush.Value) any
}

var (
	_ readSession = (*pgSession)(nil)
	_ readSession = (*sqlSession)(nil)
)

func (t *pgSession) read(ctx context.Context, text string, args []any) ([][]any, error) {
	ctx, cancel := context.WithTimeout(ctx, t.db.store.limits.trip)
	defer cancel()
	s := pgStatement{text: text, name: pgName(text)}
	for _, arg := range args {
		s.params = append(s.params, []byte(arg.(string)))
	}
	if err := t.prepare(ctx, []pgStatement{s}); err != nil {
		return nil, err
	}
	result := t.pg.ExecPrepared(ctx, s.name, s.params, nil, nil).Read()
	rows := make([][]any, len(result.Rows))
	for i, columns := range result.Rows {
		for _, column := range columns {
			rows[i] = append(rows[i], string(column))
		}
	}
	return rows, result.Err
}

// arg is the value as text, which the server reads as its column's type.
func (t *pgSession) arg(v *flush.Value) any {
	if v.Kind() == flush.KindBytes {
		return `\x` + hex.EncodeToString([]byte(v.Text()))
	}
	return string(appendText(nil, v))
}

func (s *sqlSession) read(ctx context.Context, text string, args []any) ([][]any, error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.store.limits.trip)
	defer cancel()
	statement, err := s.prepare(ctx, text)
	if err != nil {
		return nil, err
	}
	rows, err := statement.QueryContext(ctx, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() // Err tells what went wrong
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var all [][]any
	for rows.Next() {
		row := make([]any, len(columns))
		into := make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

func (s *sqlSession) arg(v *flush.Value) any { return sqlArg(v) }
