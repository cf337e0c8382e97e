package direct

import (
	"testing"

	"baton/internal/config"
	"baton/internal/operate"
	"baton/internal/testsupport"
)

// A number of kept rows is known only if the database has told it.
func TestNumberOfKeptRowsIsKnownOnlyFromTheDatabase(t *testing.T) {
	there, away := testsupport.SQLite(t), config.Database{Driver: "postgres", DSNInline: "postgres://u:p@127.0.0.1:1/none"}
	job := func(name, database string) config.Job {
		j := config.Job{Name: name}
		j.Flush.To.Database = database
		return j
	}
	s, err := Open(config.Config{
		Databases: map[string]config.Database{"main": {Driver: there.Driver, DSNInline: there.DSN}, "away": away},
		Jobs: []config.Job{
			job("users", "main"), job("orders", "away"), {Name: "report", Command: []string{"true"}},
		},
	}.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for name, known := range map[string]bool{"users": true, "orders": false, "report": false, "none": false} {
		count, err := s.Kept(t.Context(), name)
		if count != (operate.KeptCount{Known: known}) || (err != nil) != (name == "orders") {
			t.Errorf("%s: %+v, %v", name, count, err)
		}
	}
}
