package sql_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"baton/internal/flush/row"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/postgres"
	"baton/internal/testsupport"
)

// The cost of a batch depends on its rows, not on the size of the table. Whatever statistics the planner has, each way of writing may read
// only a few rows of the table for each row of the batch. Some connections have prepared their statements while the table was small.
func TestABatchTouchesNoMoreThanItsRows(t *testing.T) {
	sizes := []int{0, 100, 10_000, 100_000, 500_000}
	if os.Getenv("BATON_TEST_LONG") != "" {
		sizes = append(sizes, 1_000_000, 2_000_000)
	}
	for _, analyzed := range []string{"never", "while it was small", "always"} {
		t.Run("analyzed "+analyzed, func(t *testing.T) {
			t.Parallel()
			db := testsupport.Postgres(t)
			// The table is unlogged, which the planner ignores, so that its rows are not written twice.
			db.Exec(t, "CREATE UNLOGGED TABLE hits (id bigint PRIMARY KEY, views bigint NOT NULL CHECK (views >= 0), "+
				"note text NOT NULL DEFAULT repeat('x', 100)) WITH (autovacuum_enabled = off)")
			old, filled := map[string]*toucher{}, 0
			for _, size := range sizes {
				db.Exec(t, "INSERT INTO hits SELECT i, 100 FROM generate_series($1::int, $2::int) i", filled+1, size)
				filled = size
				if analyzed == "always" || analyzed == "while it was small" && size <= 100 {
					db.Exec(t, "VACUUM ANALYZE hits")
				}
				for when, o := range old {
					o.everyWay(t, size, when)
				}
				fresh := newToucher(t, db)
				fresh.everyWay(t, size, "statements prepared now")
				if size == 100 {
					old[fmt.Sprintf("statements prepared when there were %d", size)] = fresh
				}
			}
		})
	}
}

// everyWay writes batches whose rows are all over the table. Half of the rows exist.
func (o *toucher) everyWay(t *testing.T, size int, statements string) {
	t.Helper()
	for _, way := range []struct {
		name string
		rows int
		task func(id int, there bool) sql.Task
	}{
		{"COPY", 1500, o.write},
		{"arrays", 500, o.write},
		{"pieces", 1500, o.inPieces},
		{"pieces, some taking away", 1500, func(id int, there bool) sql.Task { return pieces(o.takeAway(id, there)) }},
		{"COPY, some taking away", 1500, o.takeAway},
		{"arrays, some taking away", 500, o.takeAway},
		{"deletes", 1500, o.remove},
		{"few deletes", 10, o.remove},
		{"replaced", 1500, o.replace},
		{"an update", 1, o.update},
	} {
		task := sql.Task{Plan: o.plan}
		for i := range way.rows {
			id := 1 + i*max(1, size/way.rows)
			if i%2 == 1 {
				id += size + way.rows
			}
			one := way.task(id, id <= size)
			task.Update, task.Replace, task.Piece, task.Refused = one.Update, one.Replace, one.Piece, one.Refused
			task.Rows = append(task.Rows, one.Rows...)
		}
		most := 3*way.rows + 1000 // rows are found and locked; a table of a few pages may be read as a whole
		for range 6 {             // from the sixth time on the server may keep one plan for a prepared statement
			if got := o.run(t, task); got > most {
				t.Errorf("%s, %d rows over %d, %s: the server read %d rows of the table, want %d at most", way.name, way.rows, size,
					statements, got, most)
				break
			}
		}
	}
}

// toucher runs tasks and counts the rows of the table hits that they read.
type toucher struct {
	plan *row.Plan
	db   sql.Database
}

func newToucher(t *testing.T, db *testsupport.Database) *toucher {
	t.Helper()
	dialect := postgres.Dialect()
	queries, err := sql.QueriesOf(dialect)
	if err != nil {
		t.Fatal(err)
	}
	limits := sql.Limits{Lock: time.Minute, Statement: time.Minute, Idle: time.Minute, Trip: 2 * time.Minute}
	opened, err := dialect.Open(sql.Setup{DSN: db.DSN, MaxConns: 1, Limits: limits, Queries: queries})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	found, err := opened.Table(t.Context(), "hits")
	if err != nil {
		t.Fatal(err)
	}
	add := row.PlanColumn{Column: found.Columns[1], Op: row.OpAdd}
	return &toucher{&row.Plan{Table: found, Columns: []row.PlanColumn{{Column: found.Columns[0]}, add}, Key: []int{0}}, opened}
}

func (*toucher) write(id int, _ bool) sql.Task { return sql.Task{Rows: []row.Row{rowOf(id, 1)}} }

// takeAway returns a task that subtracts from an existing row. The database must not refuse the task because a new row with that value
// would be invalid.
func (o *toucher) takeAway(id int, there bool) sql.Task {
	if there {
		return sql.Task{Rows: []row.Row{rowOf(id, -1)}}
	}
	return o.write(id, there)
}

// inPieces returns a task like those for rows of which some are expected to be refused.
func (o *toucher) inPieces(id int, there bool) sql.Task { return pieces(o.write(id, there)) }

func pieces(task sql.Task) sql.Task {
	task.Piece, task.Refused = 28, func(r sql.Refusal) { panic(r.Error()) }
	return task
}

func (*toucher) remove(id int, _ bool) sql.Task { return sql.Task{Rows: []row.Row{gone(2, id)}} }

func (o *toucher) replace(id int, there bool) sql.Task {
	task := o.write(id, there)
	task.Replace = true
	return task
}

func (o *toucher) update(id int, there bool) sql.Task {
	task := o.write(id, there)
	task.Update = true
	return task
}

// run does a task in a transaction that is rolled back. run returns the number of rows that the task has read. Once per second the server
// restarts its count, so the result may be too low.
func (o *toucher) run(t *testing.T, task sql.Task) int {
	t.Helper()
	tx, err := o.db.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Close(true)
	before := o.readSoFar(t, tx)
	if err := tx.Run(t.Context(), sql.Task{Query: "begin"}, task); err != nil {
		t.Fatal(err)
	}
	return o.readSoFar(t, tx) - before
}

func (o *toucher) readSoFar(t *testing.T, tx sql.Session) (rows int) {
	t.Helper()
	query := "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'hits'"
	err := tx.Read(t.Context(), query, nil, func(row []any) (err error) {
		rows, err = strconv.Atoi(fmt.Sprint(row[0]))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
