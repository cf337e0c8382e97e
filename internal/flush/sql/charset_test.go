package sql_test

import (
	"fmt"
	"strings"
	"testing"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/sql"
	"baton/internal/testsupport"
)

// If a key contains a character that its column's character set does not have, no row with that key can exist. Such a key must not prevent
// other rows from being written, deleted or found.
func TestAKeyThatItsColumnCannotHoldHoldsUpNoOthers(t *testing.T) {
	for charset, odd := range map[string]string{"latin1": "中", "ascii": "é", "utf8mb3": "😀"} {
		t.Run(charset, func(t *testing.T) {
			t.Parallel()
			testsupport.NeedsDialect(t, testsupport.DialectMariaDB)
			db := prepared(t, mariaDB)
			text := fmt.Sprintf("varchar(20) CHARACTER SET %s COLLATE %[1]s_nopad_bin", charset)
			db.Exec(t, "CREATE TABLE pairs (k "+text+", m "+text+", n int, PRIMARY KEY (k, m)) ENGINE=InnoDB")
			db.Exec(t, "CREATE TABLE ones (k "+text+" PRIMARY KEY, n int) ENGINE=InnoDB")
			s := db.leading()
			const size = 300
			var one, two, without []row.Row
			var keys, pairs [][]row.Value
			for i := range size {
				key := fmt.Sprint("k", i)
				if i%100 == 50 {
					key = odd + key
				}
				one, two, without = append(one, rowOf(key, i)), append(two, rowOf("k", key, i)), append(without, gone(2, key))
				keys, pairs = append(keys, []row.Value{value(key)}), append(pairs, []row.Value{value("k"), value(key)})
			}
			ofOne, ofTwo := plan(t, s, "ones", []string{"k"}), plan(t, s, "pairs", []string{"k", "m"})
			for n := range 3 { // the second time the statement is prepared already
				if out := apply(t, s, fence(1), ofOne, batch("a", 2*n, one...)); out.Rows != size-3 || len(out.Dead) != 3 {
					t.Errorf("%d rows, %d dead letters", out.Rows, len(out.Dead))
				}
				apply(t, s, fence(1), ofTwo, batch("b", n, two...))
				found := 0
				err := s.ReadRows(t.Context(), ofOne, keys, func([]row.Raw) error { found++; return nil })
				if err != nil || found != size-3 {
					t.Errorf("%d rows were found: %v", found, err)
				}
				finds(t, s, ofOne, keys, size-3)
				finds(t, s, ofTwo, pairs, size-3)
				finds(t, s, ofTwo, pairs[50:51], 0)
				out := apply(t, s, fence(1), ofOne, batch("a", 2*n+1, without...))
				if len(out.Dead) != 3 || !strings.Contains(out.Dead[0].Error, "collation") {
					t.Errorf("dead letters %+v", out.Dead)
				}
				db.expect("SELECT count(*) FROM ones", "0")
			}
		})
	}
}

// finds checks how many rows KeyRows returns for some keys.
func finds(t *testing.T, s *sql.Store, p *row.Plan, of [][]row.Value, want int) {
	t.Helper()
	list := &row.Plan{Table: p.Table, Inputs: p.Inputs, Columns: p.Columns[:len(p.Key)], Key: p.Key}
	found, err := s.KeyRows(t.Context(), list, flush.KeyRange{Of: of, Limit: len(of)})
	if err != nil || len(found) != want {
		t.Errorf("of %d keys of %s %d rows were found, want %d: %v", len(of), p.Table.Name, len(found), want, err)
	}
}
