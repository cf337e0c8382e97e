package sql

import (
	"fmt"
	"io/fs"
	"strings"
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
