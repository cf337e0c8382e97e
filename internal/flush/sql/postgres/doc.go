// Package postgres contains the Dialect of PostgreSQL. It uses pgx without database/sql. Package flush/sql contains the protocol of a
// batch; this package contains the SQL, the types and the statements.
//
//	postgres      the pool of connections, and the facts that were learned about the server
//	session       one connection in pipeline mode: the statements of a step are sent together, and their answers are read one by one
//	compiledPlan  the statements of a plan, which depend on its columns and not on the number of rows
//	stagingTable  a temporary table of the session for large batches, filled by COPY in binary
//
// A batch of a thousand rows or more is sent by COPY to a staging table, and from there into the table. A smaller batch is sent as one
// array for each column. Existing rows are updated from the staging table, and the others are upserted.
//
// The invariants:
//
//   - A COPY is the first statement of its transaction, before any lock, so that a process that freezes within the COPY delays no other
//     transaction.
//   - Rows are written within a savepoint, and deferred constraints are checked immediately. So a refused row is found before COMMIT.
//   - Behind a pooler the next transaction may have another session of the server. So behind a pooler no prepared statement, setting or
//     table outlives its transaction.
//
// What fails, and what then:
//
//   - If a row is refused, the session returns to the savepoint, and the batch is tried in pieces. Each piece has its own savepoint.
//   - If the user may not create temporary tables, rows are sent as arrays.
//   - If the connection breaks, or the time limit of a round trip is over, after COMMIT was sent, the outcome is unknown, and flush/sql
//     asks the ledger.
package postgres
