package postgres

import (
	"testing"
	"time"

	"baton/internal/flush/row"
	"baton/internal/flush/sql"
	"baton/internal/testsupport"
)

// BEGIN fails, because an operator cancels whatever the server is at. What is sent along with it
// must not be committed by itself: the ledger would have a batch of which no row is written.
func TestPiecesWithoutATransactionWriteNothing(t *testing.T) {
	db, err := open(sql.Setup{
		DSN: testsupport.Postgres(t).DSN, MaxConns: 4,
		Limits: sql.Limits{Lock: time.Minute, Statement: time.Minute, Idle: time.Minute, Trip: time.Minute},
		Queries: sql.Queries{"begin": "SELECT 1 / 0", "commit": "COMMIT", "rollback": "ROLLBACK",
			"ledger": "INSERT INTO ledger VALUES (1)"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	plain, release := db.Plain()
	defer func() { _ = release() }()
	if _, err := plain.ExecContext(t.Context(), "CREATE TABLE ledger (n int); CREATE TABLE users (id int PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	id := row.Column{Name: "id", Kind: row.KindInteger, DBType: "integer"}
	plan := &row.Plan{
		Table:   row.Table{Name: "users", Columns: []row.Column{id}},
		Columns: []row.PlanColumn{{Column: id}}, Key: []int{0},
	}
	rows := []row.Row{{Values: []row.Value{row.Integer(1)}}, {Values: []row.Value{row.Integer(2)}}}
	tx, err := db.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = tx.Run(t.Context(), sql.Task{Query: "begin"}, sql.Task{Query: "ledger"},
		sql.Task{Plan: plan, Rows: rows, Piece: 1, Refused: func(r sql.Refusal) { t.Errorf("refused: %v", &r) }})
	if err == nil {
		t.Error("divided by zero")
	}
	tx.Close(err == nil)
	for _, table := range []string{"ledger", "users"} {
		var n int
		if err := plain.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil || n > 0 {
			t.Errorf("table %s has %d rows, %v", table, n, err)
		}
	}
}
