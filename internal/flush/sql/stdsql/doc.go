// Package stdsql is what the dialects behind database/sql share: MySQL, MariaDB and SQLite.
//
//	DB       a database: its pool, its limits, and the functions in which the dialects differ
//	Session  one connection with its prepared statements; it outlives transactions
//	Cutter   a connection that can be cut while a statement waits on it
//	bundle   several inserts of the same fixed query as one statement
//
// The invariants:
//
//   - There are never more sessions in use than slots. Prepared statements belong to the connection, so a session keeps it.
//   - Each statement has the limit of a round trip, and ends with its context. A driver that is slow at that is given a context without
//     an end, and the connection is cut instead.
//   - A piece of rows is written as a whole, or not at all, if the task expects refusals.
//
// What fails, and what then:
//
//   - An idle connection was closed by the server: it is dropped, and another one is made. No transaction was begun.
//   - A bundle meets a row that exists or is refused: its tasks are done one at a time, which finds that row.
//   - A prepared statement has become unusable: it is prepared again.
//   - A statement was cut: the connection is not used again, and after a COMMIT its outcome is unknown.
package stdsql
