// Package postgres is the Dialect of PostgreSQL, by pgx without database/sql. Package flush/sql has the protocol of a batch; this package
// has the words, the types and the statements.
//
//	postgres      the pool of connections, and what was learned of the server
//	session       one connection in pipeline mode: the statements of a step go out together, the answers are read one by one
//	compiledPlan  the statements of a plan; they differ by columns, not by the number of rows
//	stagingTable  a temporary table of the session for large batches, filled by COPY in binary
//
// A batch of a thousand rows or more goes by COPY to a staging table, and from there into the table. A smaller one is one array a column.
// Existing rows are updated from the staging table, and the others are upserted.
//
// The invariants:
//
//   - The COPY is first in its transaction, before any lock: a process that freezes within it holds up no other transaction.
//   - Rows are written within a savepoint, and deferred constraints are checked at once. So a refused row is found before COMMIT.
//   - Behind a pooler the next transaction may have another server session: no prepared statement, setting or table outlives its
//     transaction there.
//
// What fails, and what then:
//
//   - A row is refused: the session goes back to the savepoint, and the batch is tried in pieces, each with a savepoint of its own.
//   - The user may not create temporary tables: arrays do the work.
//   - The connection breaks, or the limit of a round trip is over: after a COMMIT was sent its outcome is unknown, and flush/sql asks
//     the ledger.
package postgres
