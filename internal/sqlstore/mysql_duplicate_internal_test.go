package sqlstore

import (
	"testing"

	"github.com/go-sql-driver/mysql"
)

// MySQL answers with a duplicate key where others insert nothing. Whatever else keeps an entry
// out of the ledger, above all another transaction that is waited for in vain, says nothing of
// whether its part was applied.
func TestOnlyADuplicateKeyOfMySQLMeansThatAPartWasApplied(t *testing.T) {
	s, err := Open(Options{Name: "main", Driver: "mysql", DSN: "app@tcp(127.0.0.1:1)/app"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for number, want := range map[uint16]bool{1062: true, 1205: false, 1213: false, 1317: false, 1969: false, 3024: false, 0: false} {
		if got := s.database.(mysqlDB).duplicate(&mysql.MySQLError{Number: number}); got != want {
			t.Errorf("error %d: %v, want %v", number, got, want)
		}
	}
}
