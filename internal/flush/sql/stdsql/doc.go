// Package stdsql contains the common code of the dialects that use database/sql: MySQL, MariaDB and SQLite.
//
//	DB       a database: its pool, its limits, and the functions in which the dialects differ
//	Session  one connection with its prepared statements; a session outlives its transactions
//	Cutter   a connection that can be cut while a statement waits on it
//	bundle   several inserts of the same fixed query as one statement
//
// The invariants:
//
//   - There are never more sessions in use than slots. Prepared statements belong to the connection, so each session keeps its connection.
//   - Each statement ends with its context, or after the time limit of a round trip. If contexts that can end are slow in a driver, the
//     driver gets a context that never ends, and the connection is cut instead.
//   - If the task expects refusals, a piece of rows is written as a whole, or not at all.
//
// What fails, and what then:
//
//   - If the server has closed an idle connection, the connection is dropped, and a new one is made. No transaction was begun on it.
//   - If a row of a bundle exists already or is refused, the tasks of the bundle are run one by one to find that row.
//   - If a prepared statement has become unusable, it is prepared again.
//   - If a statement was cut, the connection is not used again. If COMMIT was sent before, its outcome is unknown.
package stdsql
