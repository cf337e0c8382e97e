package mysql

import (
	"fmt"
	"io"
	"testing"

	"github.com/go-sql-driver/mysql"

	"baton/internal/flush/sql"
)

func TestVerdictOfMySQLErrors(t *testing.T) {
	for number, want := range map[uint16]sql.Verdict{
		1264: sql.Refused, 1406: sql.Refused, 1366: sql.Refused, 1452: sql.Refused, 3819: sql.Refused, 4025: sql.Refused,
		1048: sql.Refused, 1062: sql.Refused, 1690: sql.Refused, 1644: sql.Refused,
		1213: sql.Passing, 1205: sql.Passing, 1053: sql.Passing, 1290: sql.Passing, 1317: sql.Passing, 1969: sql.Passing,
		3024: sql.Passing, 1040: sql.Passing, 4031: sql.Passing,
		1045: sql.Lasting, 1049: sql.Lasting, 1054: sql.Lasting, 1142: sql.Lasting, 1146: sql.Lasting, 1364: sql.Lasting,
		1242: sql.Refused, 1526: sql.Refused, 1863: sql.Refused,
	} {
		if got := judge(fmt.Errorf("wrapped: %w", &mysql.MySQLError{Number: number})); got != want {
			t.Errorf("error %d: %d, want %d", number, got, want)
		}
	}
	for message, want := range map[string]sql.Verdict{
		"Illegal mix of collations (latin1_bin,IMPLICIT) and (utf8mb4_bin,COERCIBLE) for operation '='": sql.Refused,
		"Illegal mix of collations (latin1_bin,IMPLICIT) and (utf8mb4_bin,IMPLICIT) for operation '='":  sql.Lasting,
	} {
		if got := judge(&mysql.MySQLError{Number: 1267, Message: message}); got != want {
			t.Errorf("%s: %d, want %d", message, got, want)
		}
	}
	for state, want := range map[string]sql.Verdict{"22012": sql.Refused, "23000": sql.Refused, "45000": sql.Refused,
		"42000": sql.Lasting, "HY000": sql.Lasting} {
		e := &mysql.MySQLError{Number: 9999}
		copy(e.SQLState[:], state)
		if got := judge(e); got != want {
			t.Errorf("SQLSTATE %s: %d, want %d", state, got, want)
		}
	}
	for err, want := range map[error]sql.Verdict{
		mysql.ErrInvalidConn: sql.Passing, io.EOF: sql.Passing, mysql.ErrPktTooLarge: sql.Refused, mysql.ErrNoTLS: sql.Lasting,
		&sql.WrongValue{}: sql.Refused,
	} {
		if got := judge(err); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}

func TestChunksOfAMySQLStatement(t *testing.T) {
	for _, c := range []struct {
		rows, columns int
		remove        bool
		want          int
	}{
		{1, 3, false, 1}, {3, 3, false, 2}, {999, 3, false, 512}, {1000, 3, false, 1000}, {5000, 3, false, 1000},
		{5000, 100, false, 655}, {700, 100, false, 655}, {600, 3, true, 500}, {2, 70000, false, 1},
	} {
		if got := chunk(c.rows, c.columns, c.remove); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// MySQL reports a duplicate key where other databases insert nothing. Any other error of the insert, above all a lock timeout, does not say
// whether the part was applied.
func TestOnlyADuplicateKeyOfMySQLMeansThatAPartWasApplied(t *testing.T) {
	db, err := open(sql.Setup{DSN: "app@tcp(127.0.0.1:1)/app", MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for number, want := range map[uint16]bool{1062: true, 1205: false, 1213: false, 1317: false, 1969: false, 3024: false, 0: false} {
		if got := db.(database).Duplicate(&mysql.MySQLError{Number: number}); got != want {
			t.Errorf("error %d: %v, want %v", number, got, want)
		}
	}
}

// Statements record the position of their rows only if the server's numbers of rows are missing or look wrong, because recording takes
// long.
func TestWhenStatementsNoteTheirPosition(t *testing.T) {
	type refused struct{ number, rows, times int }
	for name, c := range map[string]struct {
		refused []refused
		want    bool
	}{
		"nothing was refused":                 {nil, false},
		"numbers":                             {[]refused{{7, 64, 100}}, false},
		"no number":                           {[]refused{{7, 64, 100}, {0, 64, 1}}, true},
		"always the first":                    {[]refused{{1, 64, maxBadRowNumbers}}, true},
		"the first a few times":               {[]refused{{1, 64, maxBadRowNumbers - 1}, {7, 64, 1}, {1, 64, maxBadRowNumbers - 1}}, false},
		"always the first of small pieces":    {[]refused{{1, doubtedRows - 1, 100}}, false},
		"no number once, and numbers then on": {[]refused{{0, 64, 1}, {7, 64, 100}}, true},
	} {
		var d badRowNumbers
		for _, r := range c.refused {
			for range r.times {
				d.weigh(r.number, r.rows)
			}
		}
		if d.counts() != c.want {
			t.Errorf("%s: %t", name, d.counts())
		}
	}
}
