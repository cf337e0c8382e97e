package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

var _ flush.TableCreator = (*Store)(nil)

// DescribeTable implements flush.TableCreator.
func (s *Store) DescribeTable(t row.TableSpec) (ddl string, table row.Table, err error) {
	q := s.dialect.Quote
	table = row.Table{Name: t.Name}
	var lines []string
	for _, c := range t.Columns {
		column, ok := s.dialect.Column(c, slices.Contains(t.Key, c.Name) || slices.Contains(t.Unique, c.Name))
		if !ok {
			return "", table, fmt.Errorf("database %q: cannot create a table with column %q of type %s: create the table by hand", s.name,
				c.Name, c.Kind)
		}
		column.Name, column.Nullable, column.Default = c.Name, c.Nullable, c.Default
		line := q.Ident(c.Name) + " " + column.DBType
		if !c.Nullable {
			line += " NOT NULL"
		}
		if c.Default {
			line += " DEFAULT 0"
			column.Constant = row.Raw{Text: "0", OK: true}
		}
		lines = append(lines, line)
		table.Columns = append(table.Columns, column)
	}
	for _, unique := range []struct {
		words   string
		columns []string
	}{{"PRIMARY KEY", t.Key}, {"UNIQUE", t.Unique}} {
		if len(unique.columns) == 0 {
			continue
		}
		quoted := make([]string, len(unique.columns))
		for i, name := range unique.columns {
			quoted[i] = q.Ident(name)
		}
		lines = append(lines, fmt.Sprintf("%s (%s)", unique.words, strings.Join(quoted, ", ")))
		table.Unique = append(table.Unique, unique.columns)
	}
	ddl = fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (\n  %s\n)%s", q.Table(t.Name), strings.Join(lines, ",\n  "), s.dialect.TableOptions)
	return ddl, table, nil
}

// CreateTable implements flush.TableCreator.
func (s *Store) CreateTable(ctx context.Context, t row.TableSpec) error {
	ddl, _, err := s.DescribeTable(t)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.limits.Trip)
	defer cancel()
	err = s.exec(ctx, ddl)
	if err != nil {
		// If CREATE TABLE IF NOT EXISTS fails, another session may have created the table at the same time: PostgreSQL then returns an
		// error.
		if _, missing := s.Table(ctx, t.Name); missing == nil {
			return nil
		}
	}
	return s.failed(ctx, fmt.Sprintf("create table %q", t.Name), err)
}

// exec runs one statement that does not belong to a batch.
func (s *Store) exec(ctx context.Context, statement string) error {
	db, release := s.database.Plain()
	run := func() error {
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		if s.database.Settings() == "" {
			_, err = conn.ExecContext(ctx, statement)
		} else {
			err = s.apart(ctx, conn, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, statement)
				return err
			})
		}
		return errors.Join(err, conn.Close())
	}
	err := run()
	if released := release(); err == nil {
		err = released
	}
	return err
}
