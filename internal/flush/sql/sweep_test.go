package sql_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"baton/internal/flush/row"
	"baton/internal/flush/sql"
)

// stalePlan returns the plan of a sweep. Its columns are the columns of the key and, as the last one, the generation.
func stalePlan(t *testing.T, s *sql.Store, table string, columns ...string) *row.Plan {
	t.Helper()
	found, err := s.Table(t.Context(), table)
	if err != nil {
		t.Fatal(err)
	}
	p := &row.Plan{Table: found, Inputs: []string{"all"}}
	for i, name := range columns {
		at := slices.IndexFunc(found.Columns, func(c row.Column) bool { return c.Name == name })
		p.Columns = append(p.Columns, row.PlanColumn{Column: found.Columns[at]})
		p.Key = append(p.Key, i)
	}
	return p
}

// stale returns all stale rows, in pages of limit rows. key converts the texts of a key to values.
func stale(t *testing.T, s *sql.Store, p *row.Plan, current int64, limit int, key func(texts []string) []row.Value) []string {
	t.Helper()
	var all []string
	var behind []row.Value
	for {
		rows, err := s.StaleRows(t.Context(), p, current, behind, limit)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) > limit {
			t.Fatalf("%d rows, and %d were asked for", len(rows), limit)
		}
		for _, row := range rows {
			all = append(all, strings.Join(row, "|"))
		}
		if len(rows) == 0 {
			return all
		}
		behind = key(rows[len(rows)-1])
	}
}

func wantCount(t *testing.T, s *sql.Store, p *row.Plan, current, stale, all int64) {
	t.Helper()
	gotStale, gotAll, err := s.CountStale(t.Context(), p, current)
	if err != nil || gotStale != stale || gotAll != all {
		t.Errorf("counted %d stale rows of %d, %v; want %d of %d", gotStale, gotAll, err, stale, all)
	}
}

func integerKey(t *testing.T) func([]string) []row.Value {
	return func(texts []string) []row.Value {
		var n int64
		if _, err := fmt.Sscan(texts[0], &n); err != nil {
			t.Fatal(err)
		}
		return []row.Value{row.Integer(n)}
	}
}

func textKey(columns int) func([]string) []row.Value {
	return func(texts []string) []row.Value {
		var values []row.Value
		for _, text := range texts[:columns] {
			values = append(values, row.String(row.KindText, text))
		}
		return values
	}
}

func TestKeysOfSeveralColumnsAreWalkedInTheOrderOfTheirIndex(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		const columns = "shop varchar(20) NOT NULL, gen bigint, item varchar(20) NOT NULL, size integer NOT NULL, UNIQUE (item, shop, size)"
		db.create("CREATE TABLE stock ("+columns+")", "CREATE TABLE stock ("+columns+") ENGINE=InnoDB", "CREATE TABLE stock ("+columns+")")
		s := db.open()
		p := stalePlan(t, s, "stock", "item", "shop", "size", "gen")
		var want []string
		for _, item := range []string{"", "a", "it''s", "z"} {
			for _, shop := range []string{"a", "b"} {
				for size := range 3 {
					db.Exec(t, fmt.Sprintf("INSERT INTO stock (shop, item, size, gen) VALUES ('%s', '%s', %d, %d)", shop, item, size,
						1+size))
					if size != 1 {
						want = append(want, fmt.Sprintf("%s|%s|%d|%d", strings.ReplaceAll(item, "''", "'"), shop, size, 1+size))
					}
				}
			}
		}
		wantCount(t, s, p, 2, 16, 24)
		for _, limit := range []int{1, 5, 100} {
			got := stale(t, s, p, 2, limit, func(texts []string) []row.Value {
				return append(textKey(2)(texts), integerKey(t)(texts[2:])...)
			})
			if !slices.Equal(got, want) {
				t.Errorf("%d at a time: %q, want %q", limit, got, want)
			}
		}
	})
}

// A key of any type must be found again by the text that was read, whatever bytes it contains.
func TestKeysOfEveryTypeAreFound(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.speaksMariaDB(t)
		if db.Driver == "postgres" { // so that the database's settings do not matter
			const alter = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I %s', current_database()); END $$"
			db.Exec(t, fmt.Sprintf(alter, "SET bytea_output = escape"))
			defer db.Exec(t, fmt.Sprintf(alter, "RESET bytea_output"))
		}
		texts := []string{"", "'", "a\\b", "ключ", "🙂", "100%", "Z"}
		raw := []string{"", "\x00", "\x00\xff", "a", "\\x41", "\xff"}
		for _, c := range []struct {
			name, postgres, mysql, sqlite string
			kind                          row.Kind
			keys                          []string
		}{
			{"t_text", "text", "varchar(50) COLLATE utf8mb4_bin", "TEXT", row.KindText, texts},
			{"t_bytes", "bytea", "varbinary(50)", "BLOB", row.KindBytes, raw},
			{"t_uuid", "uuid", "uuid", "UUID", row.KindUUID, []string{"00000000-0000-0000-0000-00000000000a",
				"ffffffff-0000-0000-0000-000000000001"}},
		} {
			create := "CREATE TABLE " + c.name + " (k %s PRIMARY KEY, gen bigint)"
			db.create(fmt.Sprintf(create, c.postgres), fmt.Sprintf(create, c.mysql)+" ENGINE=InnoDB", fmt.Sprintf(create, c.sqlite))
			s := db.leading()
			p := stalePlan(t, s, c.name, "k", "gen")
			upsert := plan(t, s, c.name, []string{"k"})
			var rows []row.Row
			for _, key := range c.keys {
				rows = append(rows, rowOf(row.String(c.kind, key), 7))
			}
			if out := apply(t, s, fence(1), upsert, batch("b", -1, rows...)); len(out.Dead) > 0 {
				t.Fatalf("%s: %v", c.name, out.Dead)
			}
			typed := func(texts []string) []row.Value { return []row.Value{row.String(c.kind, texts[0])} }
			got := stale(t, s, p, 8, 1, typed)
			want := make([]string, len(c.keys))
			for i, key := range c.keys {
				want[i] = key + "|7"
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", c.name, got, want)
			}
		}
	})
}

// The table has more rows than one statement reads, and its stale rows are far apart.
func TestBigTablesAreWalkedInStretches(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.speaksMariaDB(t)
		const rows = 21_000
		numbers := map[string]string{
			"postgres": "generate_series(1, %d) AS s(n)",
			"mysql":    "seq_1_to_%d",
			"sqlite":   "(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < %d) SELECT n FROM s)",
		}[db.Driver]
		n := map[string]string{"mysql": "seq"}[db.Driver]
		if n == "" {
			n = "n"
		}
		db.create(
			"CREATE TABLE big (id bigint PRIMARY KEY, gen bigint)",
			"CREATE TABLE big (id bigint PRIMARY KEY, gen bigint) ENGINE=InnoDB",
			"CREATE TABLE big (id INTEGER PRIMARY KEY, gen BIGINT)")
		db.Exec(t, fmt.Sprintf("INSERT INTO big SELECT %[1]s, CASE WHEN %[1]s %% 10000 = 0 THEN 1 ELSE 2 END FROM "+numbers, n, rows))
		s := db.open()
		p := stalePlan(t, s, "big", "id", "gen")
		wantCount(t, s, p, 2, 2, rows)
		wantCount(t, s, p, 1, rows-2, rows)
		if got := stale(t, s, p, 2, 100, integerKey(t)); !slices.Equal(got, []string{"10000|1", "20000|1"}) {
			t.Errorf("stale: %q", got)
		}
		if got := stale(t, s, p, 1, 30000, integerKey(t)); len(got) != rows-2 || !slices.Contains(got, "20001|2") {
			t.Errorf("%d stale rows", len(got))
		}
	})
}
