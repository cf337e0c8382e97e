package sql

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"baton/internal/flush/row"
)

const (
	// rowsAsked limits the number of keys in one statement for a key of one column, and keysSpelled does so for a key of several columns.
	rowsAsked, keysSpelled = 256, 64
)

// ReadRows reads rows by their keys. It calls the function each for every row found, with the texts of the plan's columns; times are in
// UTC. ReadRows may also call that function for other rows whose keys are equal in the column's collation.
func (s *Store) ReadRows(ctx context.Context, p *row.Plan, keys [][]row.Value, each func(cells []row.Raw) error) error {
	const doing = "read rows by their keys"
	tx, err := s.database.Session(ctx)
	if err != nil {
		return s.failed(ctx, doing, err)
	}
	most := rowsAsked
	if len(p.Key) > 1 {
		most = keysSpelled
	}
	var names []string
	for _, c := range p.Columns {
		names = append(names, s.dialect.Quote.Ident(c.Name))
	}
	for some := range slices.Chunk(keys, most) {
		if err = s.readRows(ctx, tx, p, strings.Join(names, ", "), some, each); err != nil {
			break
		}
	}
	tx.Close(err == nil)
	return s.failed(ctx, doing, err)
}

// readRows works like ReadRows, on one connection. It skips keys that the column cannot contain: see keyRows.
func (s *Store) readRows(
	ctx context.Context, tx Session, p *row.Plan, names string, keys [][]row.Value, each func(cells []row.Raw) error,
) error {
	where, args := s.anyOf(p, keys)
	query := fmt.Sprintf(s.queries["rows"], names, s.dialect.Quote.Table(p.Table.Name), where)
	err := tx.Read(ctx, query, args, func(values []any) error {
		cells := make([]row.Raw, len(values))
		for i, v := range values {
			cells[i] = cellOf(p.Columns[i].Column, v)
		}
		return each(cells)
	})
	if err == nil || s.dialect.Judge(err) != Refused {
		return err
	}
	for _, half := range halves(keys) {
		if err := s.readRows(ctx, tx, p, names, half, each); err != nil {
			return err
		}
	}
	return nil
}

// anyOf returns the condition that a row has one of these keys. The number of placeholders is a power of two, so that few different
// statements are prepared.
func (s *Store) anyOf(p *row.Plan, keys [][]row.Value) (where string, args []any) {
	places := 1
	for places < len(keys) {
		places *= 2
	}
	for i := range places {
		args = append(args, arguments(keys[min(i, len(keys)-1)])...)
	}
	if len(p.Key) == 1 {
		return s.dialect.Quote.Ident(p.Columns[p.Key[0]].Name) + " IN (" + Repeat("?", places) + ")", args
	}
	one := "(" + s.keyIs(p) + ")"
	return strings.TrimSuffix(strings.Repeat(one+" OR ", places), " OR "), args
}

// keyIs returns the condition that is true for the row with a key.
func (s *Store) keyIs(p *row.Plan) string {
	parts := make([]string, len(p.Key))
	for i, column := range p.Key {
		parts[i] = s.dialect.Quote.Ident(p.Columns[column].Name) + " = ?"
	}
	return strings.Join(parts, " AND ")
}

// cellOf converts a value from the database to a row.Raw. For NULL the Raw has OK = false.
func cellOf(c row.Column, v any) row.Raw {
	switch v := v.(type) {
	case nil:
		return row.Raw{}
	case time.Time:
		return row.Raw{Text: v.UTC().Format(time.RFC3339Nano), OK: true}
	case []byte:
		if c.Kind == row.KindInteger && strings.HasPrefix(c.DBType, "bit") { // a bit is read as the text of a number
			var number [8]byte
			copy(number[8-min(8, len(v)):], v)
			return row.Raw{Text: strconv.FormatUint(binary.BigEndian.Uint64(number[:]), 10), OK: true}
		}
	}
	return row.Raw{Text: Text(v), OK: true}
}

// Holds reports whether the row with a key has the given value in a column of the plan. The database compares the values.
func (s *Store) Holds(ctx context.Context, p *row.Plan, key []row.Value, column int, value row.Value) (held bool, err error) {
	const doing = "compare a value"
	tx, err := s.database.Session(ctx)
	if err != nil {
		return false, s.failed(ctx, doing, err)
	}
	c := p.Columns[column].Column
	equal := "%s = ?"
	if s.dialect.Same != nil {
		equal = s.dialect.Same(c)
	}
	where := s.keyIs(p) + " AND " + fmt.Sprintf(equal, s.dialect.Quote.Ident(c.Name))
	query := fmt.Sprintf(s.queries["rows"], "1", s.dialect.Quote.Table(p.Table.Name), where)
	args := append(arguments(key), Argument(&value))
	err = tx.Read(ctx, query, args, func([]any) error {
		held = true
		return nil
	})
	tx.Close(err == nil)
	return held, s.failed(ctx, doing, err)
}
