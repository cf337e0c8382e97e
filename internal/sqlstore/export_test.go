package sqlstore

import (
	"fmt"
	"io/fs"
	"strings"
)

// MaxStatements is how many a connection keeps prepared.
const MaxStatements = maxStatements

// OwnTables is what Migrate runs in an empty database, as one text and without its locks: tests
// of other things than the migration begin with it. Nodes find nothing left to do.
func OwnTables(driver string) (string, error) {
	fill := (&Store{prefix: "baton_"}).fill()
	queries, err := loadQueries(driver, fill)
	if err != nil {
		return "", err
	}
	files, err := fs.Glob(migrationFiles, "migrations/"+driver+"/*.sql")
	if err != nil {
		return "", err
	}
	all := []string{queries["version_table"], queries["version_zero"]}
	for i, name := range files {
		text, err := fs.ReadFile(migrationFiles, name)
		if err != nil {
			return "", err
		}
		up, _, _ := strings.Cut(string(text), "-- +goose Down")
		version := fmt.Sprintf("INSERT INTO baton_schema_version (version_id, is_applied) VALUES (%d, true)", i+1)
		all = append(all, strings.TrimSuffix(strings.TrimSpace(fill.Replace(up)), ";"), version)
	}
	return strings.Join(all, ";\n"), nil
}
