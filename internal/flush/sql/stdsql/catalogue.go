package stdsql

import (
	"context"
	dbsql "database/sql"

	"baton/internal/flush/sql"
)

// UniqueIndexes returns the columns of unique indexes. For each column of an index, the query returns the index, the column and a boolean.
// The boolean says that the index contains only a part of the column, or an expression. UniqueIndexes skips an index with such a column.
func UniqueIndexes(ctx context.Context, db *dbsql.DB, query string, args ...any) ([][]string, error) {
	type part struct {
		index, column string
		partial       bool
	}
	parts, err := Collect(ctx, db, query, func(scan func(...any) error) (part, error) {
		var p part
		var column dbsql.NullString
		err := scan(&p.index, &column, &p.partial)
		p.column = column.String
		return p, err
	}, args...)
	if err != nil {
		return nil, err
	}
	var unique [][]string
	for i := 0; i < len(parts); {
		var columns []string
		whole := true
		start := i
		for ; i < len(parts) && parts[i].index == parts[start].index; i++ {
			columns = append(columns, parts[i].column)
			whole = whole && !parts[i].partial
		}
		if whole {
			unique = append(unique, columns)
		}
	}
	return unique, nil
}

// ScanName reads a row that consists of one text. It is an argument for Collect.
func ScanName(scan func(...any) error) (string, error) {
	var name string
	err := scan(&name)
	return name, err
}

// Collect runs a query, and returns a value for each of its rows.
func Collect[T any](
	ctx context.Context, db *dbsql.DB, query string, read func(scan func(...any) error) (T, error), args ...any,
) ([]T, error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // errors are reported by rows.Err
	var all []T
	for rows.Next() {
		one, err := read(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// IndexesOf returns the indexes that a query finds. Each row of the query is an index and one of its columns, in the order of the index.
func IndexesOf(ctx context.Context, d *DB, query string, args ...any) ([]sql.UniqueIndex, error) {
	type part struct{ index, column string }
	parts, err := Collect(ctx, d.Pool, query, func(scan func(...any) error) (part, error) {
		var p part
		err := scan(&p.index, &p.column)
		return p, err
	}, args...)
	if err != nil {
		return nil, err
	}
	var all []sql.UniqueIndex
	for _, part := range parts {
		if n := len(all); n == 0 || all[n-1].Name != part.index {
			all = append(all, sql.UniqueIndex{Name: part.index, Plain: true})
		}
		last := &all[len(all)-1]
		last.Columns = append(last.Columns, part.column)
	}
	return all, nil
}
