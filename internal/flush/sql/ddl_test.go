package sql_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
)

// specOfAll returns a table with a column of every type.
func specOfAll(t *testing.T) row.TableSpec {
	t.Helper()
	columns := map[string]mapping.ColumnSpec{
		"views": {From: row.InputValue, Op: "add"}, "order": {Type: "integer", Missing: "error"}, "lang": {Type: "text"},
	}
	for _, kind := range []string{"integer", "float", "numeric", "text", "bytes", "boolean", "timestamp", "date", "json", "uuid"} {
		columns["a_"+kind] = mapping.ColumnSpec{Type: kind}
	}
	spec, err := mapping.NewTableSpec(mapping.Spec{Table: "made", Key: []string{"lang", "a_integer"}, DedupeKey: []string{"a_bytes"},
		Columns: columns},
		row.Inputs{Names: []string{row.InputField, row.InputValue}, Guarantee: row.ByLedger})
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func TestTableIsMadeAsItWasDescribed(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		s, spec := db.open(), specOfAll(t)
		ddl, want, err := s.DescribeTable(spec)
		if err != nil {
			t.Fatal(err)
		}
		var makers sync.WaitGroup
		for range 4 { // a deposed leader may create the table at the same time
			makers.Go(func() {
				if err := s.CreateTable(t.Context(), spec); err != nil && !strings.Contains(err.Error(), "pg_") {
					t.Error(err)
				}
			})
		}
		makers.Wait()
		if err := s.CreateTable(t.Context(), spec); err != nil {
			t.Errorf("once more: %v", err)
		}
		got, err := s.Table(t.Context(), "made")
		if err != nil {
			t.Fatal(err)
		}
		// MariaDB shows a JSON column with the text type that it stores, and integers with a display width. The comparison ignores both.
		same := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".DBType" }, cmp.Ignore())
		sorted := cmpopts.SortSlices(func(a, b row.Column) bool { return a.Name < b.Name })
		if db.Driver == "mysql" {
			for i, c := range got.Columns {
				if c.Name == "a_json" {
					got.Columns[i] = row.Column{Name: c.Name, Kind: row.KindJSON, Nullable: true}
				}
			}
		}
		if got.Identity == "" {
			t.Error("the table that was made has no identity")
		}
		got.Identity = "" // only an existing table has an identity
		if diff := cmp.Diff(want, got, same, sorted); diff != "" {
			t.Errorf("%s\n(-described +made):\n%s", ddl, diff)
		}
	})
}

// Several jobs of one table, or a leader and its successor, may create the table at the same time.
func TestTableIsMadeByWhoeverComes(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		s, spec := db.open(), specOfAll(t)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for n := range 5 {
					spec := spec
					spec.Name = fmt.Sprint("made_", n)
					if err := s.CreateTable(t.Context(), spec); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
	})
}

func TestMadeTableKeepsRowsApartByCaseAndBlanks(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		s, spec := db.open(), specOfAll(t)
		if err := s.CreateTable(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		insert := "INSERT INTO made (lang, a_integer, a_bytes, " + quoted(db, "order") + ") VALUES "
		db.Exec(t, insert+"('de', 1, 'x', 1)")
		db.Exec(t, insert+"('DE', 1, 'y', 1)")
		db.Exec(t, insert+"('de ', 1, 'z', 1)")
		if rows := db.Rows(t, "SELECT lang, views FROM made ORDER BY lang"); len(rows) != 3 || rows[0][1] != "0" {
			t.Errorf("rows: %v", rows)
		}
	})
}

func quoted(db *bench, name string) string {
	if db.Driver == "mysql" {
		return "`" + name + "`"
	}
	return `"` + name + `"`
}

func TestTableOfASchemaIsMadeThere(t *testing.T) {
	db := &bench{Database: kinds[0].make(t), t: t}
	s, spec := db.open(), specOfAll(t)
	spec.Name = `shop."odd.name"`
	if err := s.CreateTable(t.Context(), spec); err == nil {
		t.Error("there is no such schema, and no error")
	}
	db.Exec(t, "CREATE SCHEMA shop")
	if err := s.CreateTable(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Table(t.Context(), spec.Name); err != nil {
		t.Error(err)
	}
}
