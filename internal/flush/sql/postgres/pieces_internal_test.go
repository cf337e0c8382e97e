package postgres

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"baton/internal/flush/row"
	"baton/internal/flush/sql"
	"baton/internal/testsupport"
)

// BEGIN fails because an operator cancels the server's present statement. The statements that were sent together with BEGIN must not be
// committed by themselves, because the ledger would then contain a batch without its rows.
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

// A unique constraint that is DEFERRABLE is checked after all rows of a piece. The server has then begun all rows, and the error contains
// the value at fault.
func TestTheRowAtFaultIsThatOfTheKeyInTheError(t *testing.T) {
	mail := row.Column{Name: "mail", Kind: row.KindText, DBType: "text"}
	p := piece{Task: sql.Task{Plan: &row.Plan{Columns: []row.PlanColumn{{Column: mail}}}}}
	for _, text := range []string{"a", "taken", "b", "c"} {
		p.Rows = append(p.Rows, row.Row{Values: []row.Value{row.String(row.KindText, text)}})
	}
	unique := &pgconn.PgError{Code: "23505", Detail: "Key (mail)=(taken) already exists."}
	of := func(code, detail string) error { return &pgconn.PgError{Code: code, Detail: detail} }
	for _, c := range []struct {
		name  string
		err   error
		begun int
		want  int
	}{
		{"unique, deferrable", unique, 4, 1},
		{"unique, checked with its row", unique, 2, 1},
		{"unique, of a column that is not written", of("23505", "Key (lower(mail))=(taken) already exists."), 4, 3},
		{"foreign key", of("23503", `Key (mail)=(taken) is not present in table "mails".`), 4, 1},
		{"check", of("23514", "Failing row contains (c)."), 4, 3},
		{"trigger after all rows", of("P0001", ""), 4, -1},
	} {
		if got := p.culprit(c.err, c.begun); got != c.want {
			t.Errorf("%s: row %d, want %d", c.name, got, c.want)
		}
	}
}
