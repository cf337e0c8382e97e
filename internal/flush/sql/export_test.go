package sql

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

// OwnTables returns the statements that Migrate runs in an empty database, as one text and without locks. Tests that do not test the
// migration begin with these statements, so that Migrate has nothing left to do.
func OwnTables(d *Dialect) (string, error) {
	fill := (&Store{prefix: "baton_", dialect: d}).fill()
	queries, err := loadQueries(fill, "queries.sql", common, d.Files)
	if err != nil {
		return "", err
	}
	files, err := fs.Glob(d.Files, "migrations/*.sql")
	if err != nil {
		return "", err
	}
	all := []string{queries["version_table"], queries["version_zero"]}
	for i, name := range files {
		text, err := fs.ReadFile(d.Files, name)
		if err != nil {
			return "", err
		}
		up, _, _ := strings.Cut(string(text), "-- +goose Down")
		version := fmt.Sprintf("INSERT INTO baton_schema_version (version_id, is_applied) VALUES (%d, true)", i+1)
		all = append(all, strings.TrimSuffix(strings.TrimSpace(fill.Replace(up)), ";"), version)
	}
	return strings.Join(all, ";\n"), nil
}

// QueriesOf returns the queries of a store with the dialect.
func QueriesOf(d *Dialect) (Queries, error) {
	return loadQueries((&Store{prefix: "p_", dialect: d}).fill(), "queries.sql", common, d.Files)
}

// ExplainTakeBack returns the plan of the query that removes a kept copy of a row that stays in its table.
func (s *Store) ExplainTakeBack(ctx context.Context, explain, job string) (answer string, err error) {
	const time = "2026-01-01 00:00:00"
	err = s.transact(ctx, "explain", func(tx Session) error {
		return tx.Read(ctx, explain+" "+s.queries["kept_take_back"], []any{time, "", job, "{}", time}, func(row []any) error {
			answer += strings.Join(texts(row), " ") + "\n"
			return nil
		})
	})
	return answer, err
}

// ExplainKeyRows returns the plan of the query that KeyRows runs, one text for each row of the database's answer.
func (s *Store) ExplainKeyRows(ctx context.Context, explain string, p *row.Plan, which flush.KeyRange) ([]string, error) {
	tx, err := s.database.Session(ctx)
	if err != nil {
		return nil, err
	}
	if len(which.Of) <= 1 {
		err = s.byIndex(ctx, tx)
	}
	query, args := s.newWalk(tx, p).listing(which)
	var answer []string
	err = errors.Join(err, tx.Read(ctx, explain+" "+query, args, func(row []any) error {
		answer = append(answer, strings.Join(texts(row), " "))
		return nil
	}))
	tx.Close(err == nil)
	return answer, err
}
