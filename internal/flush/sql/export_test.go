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

// OwnTables is what Migrate runs in an empty database, as one text and without its locks: tests
// of other things than the migration begin with it. Nodes find nothing left to do.
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

// QueriesOf are the queries that a store of the dialect has.
func QueriesOf(d *Dialect) (Queries, error) {
	return loadQueries((&Store{prefix: "p_", dialect: d}).fill(), "queries.sql", common, d.Files)
}

// ExplainKeyRows is how the database does what KeyRows asks for, a text for each row of its answer.
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
