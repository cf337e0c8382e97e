package sqlstore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"baton/internal/flush"
	"baton/internal/sqlstore"
)

// stalePlan is the plan of a sweep: the key's columns and, last, the generation.
func stalePlan(t *testing.T, s *sqlstore.Store, table string, columns ...string) *flush.Plan {
	t.Helper()
	found, err := s.Table(t.Context(), table)
	if err != nil {
		t.Fatal(err)
	}
	p := &flush.Plan{Table: found, Inputs: []string{"all"}}
	for i, name := range columns {
		at := slices.IndexFunc(found.Columns, func(c flush.Column) bool { return c.Name == name })
		p.Columns = append(p.Columns, flush.PlanColumn{Column: found.Columns[at]})
		p.Key = append(p.Key, i)
	}
	return p
}

// stale reads all stale rows, a few at a time. key reads the texts of a key.
func stale(t *testing.T, s *sqlstore.Store, p *flush.Plan, current int64, limit int, key func(texts []string) []flush.Value) []string {
	t.Helper()
	var all []string
	var behind []flush.Value
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

func wantCount(t *testing.T, s *sqlstore.Store, p *flush.Plan, current, stale, all int64) {
	t.Helper()
	gotStale, gotAll, err := s.CountStale(t.Context(), p, current)
	if err != nil || gotStale != stale || gotAll != all {
		t.Errorf("counted %d stale rows of %d, %v; want %d of %d", gotStale, gotAll, err, stale, all)
	}
}

func integerKey(t *testing.T) func([]string) []flush.Value {
	return func(texts []string) []flush.Value {
		var n int64
		if _, err := fmt.Sscan(texts[0], &n); err != nil {
			t.Fatal(err)
		}
		return []flush.Value{flush.Integer(n)}
	}
}

func textKey(columns int) func([]string) []flush.Value {
	return func(texts []string) []flush.Value {
		var values []flush.Value
		for _, text := range texts[:columns] {
			values = append(values, flush.String(flush.KindText, text))
		}
		return values
	}
}

func TestRowsOfOtherPassesAreFoundInKeyOrder(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.create(
			"CREATE TABLE s (id bigint PRIMARY KEY, v text, gen bigint)",
			"CREATE TABLE s (id bigint PRIMARY KEY, v text, gen bigint) ENGINE=InnoDB",
			"CREATE TABLE s (id INTEGER PRIMARY KEY, v TEXT, gen BIGINT)")
		s := db.open()
		p := stalePlan(t, s, "s", "id", "gen")
		wantCount(t, s, p, 1, 0, 0)
		if rows := stale(t, s, p, 1, 10, integerKey(t)); len(rows) != 0 {
			t.Errorf("an empty table has stale rows: %q", rows)
		}
		// No scan has written 1 (NULL) and 2 (0); -7 and 100 are of the current pass, and
		// a pass with a higher number is another one, too.
		db.Exec(t, "INSERT INTO s (id, gen) VALUES (1, NULL), (2, 0), (-7, 500), (100, 500), (3, 499), (-9, 1), (20, 501), (1000, 499)")
		wantCount(t, s, p, 500, 4, 6)
		for _, limit := range []int{1, 2, 100} {
			got := stale(t, s, p, 500, limit, integerKey(t))
			if want := []string{"-9|1", "3|499", "20|501", "1000|499"}; !slices.Equal(got, want) {
				t.Errorf("%d at a time: %q, want %q", limit, got, want)
			}
		}
	})
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
					db.Exec(t, fmt.Sprintf("INSERT INTO stock (shop, item, size, gen) VALUES ('%s', '%s', %d, %d)", shop, item, size, 1+size))
					if size != 1 {
						want = append(want, fmt.Sprintf("%s|%s|%d|%d", strings.ReplaceAll(item, "''", "'"), shop, size, 1+size))
					}
				}
			}
		}
		wantCount(t, s, p, 2, 16, 24)
		for _, limit := range []int{1, 5, 100} {
			got := stale(t, s, p, 2, limit, func(texts []string) []flush.Value {
				return append(textKey(2)(texts), integerKey(t)(texts[2:])...)
			})
			if !slices.Equal(got, want) {
				t.Errorf("%d at a time: %q, want %q", limit, got, want)
			}
		}
	})
}

// The key's type must survive the way there and back, whatever bytes it has.
func TestKeysOfEveryTypeAreFound(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		texts := []string{"", "'", "a\\b", "ключ", "🙂", "100%", "Z"}
		raw := []string{"", "\x00", "\x00\xff", "a", "\\x41", "\xff"}
		for _, c := range []struct {
			name, postgres, mysql, sqlite string
			kind                          flush.Kind
			keys                          []string
		}{
			{"t_text", "text", "varchar(50) COLLATE utf8mb4_bin", "TEXT", flush.KindText, texts},
			{"t_bytes", "bytea", "varbinary(50)", "BLOB", flush.KindBytes, raw},
			{"t_uuid", "uuid", "uuid", "UUID", flush.KindUUID, []string{"00000000-0000-0000-0000-00000000000a", "ffffffff-0000-0000-0000-000000000001"}},
		} {
			create := "CREATE TABLE " + c.name + " (k %s PRIMARY KEY, gen bigint)"
			db.create(fmt.Sprintf(create, c.postgres), fmt.Sprintf(create, c.mysql)+" ENGINE=InnoDB", fmt.Sprintf(create, c.sqlite))
			s := db.open()
			takeOver(t, s, fence(1))
			p := stalePlan(t, s, c.name, "k", "gen")
			upsert := plan(t, s, c.name, []string{"k"})
			var rows []flush.Row
			for _, key := range c.keys {
				rows = append(rows, row(flush.String(c.kind, key), 7))
			}
			if out := apply(t, s, fence(1), upsert, batch("b", -1, rows...)); len(out.Dead) > 0 {
				t.Fatalf("%s: %v", c.name, out.Dead)
			}
			typed := func(texts []string) []flush.Value { return []flush.Value{flush.String(c.kind, texts[0])} }
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

// More rows than one statement looks at, stale ones far apart.
func TestBigTablesAreWalkedInStretches(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
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

// A row that was written again since it was found is not the one that is to go.
func TestARowOfAnotherGenerationIsNotDeleted(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.create(
			"CREATE TABLE s (id bigint PRIMARY KEY, v text, gen bigint)",
			"CREATE TABLE s (id bigint PRIMARY KEY, v text, gen bigint) ENGINE=InnoDB",
			"CREATE TABLE s (id INTEGER PRIMARY KEY, v TEXT, gen BIGINT)")
		db.Exec(t, "INSERT INTO s (id, gen) VALUES (1, 5), (2, 5), (3, 6), (4, NULL)")
		s := db.open()
		takeOver(t, s, fence(1))
		p := stalePlan(t, s, "s", "id", "gen")
		b := batch("b", -1, gone(2, 1, 5), gone(2, 3, 5), gone(2, 4, 5))
		apply(t, s, fence(1), p, b)
		db.expect("SELECT id FROM s ORDER BY id", "2", "3", "4")
		takeOver(t, s, fence(2))
		_, err := s.Apply(t.Context(), fence(1), p, batch("b", -1, gone(2, 2, 5)))
		wantFenced(t, err, 2)
		db.expect("SELECT id FROM s ORDER BY id", "2", "3", "4")
	})
}
