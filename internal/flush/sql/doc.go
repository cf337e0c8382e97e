// Package sql writes batches into databases, each batch in one transaction. It is the
// Sink of package flush. The differences of databases are a Dialect, in a package of its own.
//
// # One batch, one transaction
//
//	BEGIN
//	  INSERT ledger (job, batch, part)      conflict: applied before, roll back
//	  DELETE, INSERT … ON CONFLICT UPDATE   refused rows are set aside
//	  INSERT dead letters                   what did not fit, in the same transaction
//	  SELECT epoch, owner FROM fence FOR SHARE
//	COMMIT                                  sent only if the fence is ours
//
// A batch that is begun ahead of its turn (flush.Batch.Turn) writes its rows first, and asks
// the ledger when its turn has come.
//
// Taking over is UPDATE fence SET epoch WHERE epoch < ours, committed. A batch
// that has read its fence holds the row shared until its COMMIT is done, so the
// taker waits for it. A batch that has not read it yet finds the new epoch and
// rolls back. Once TakeOver returns, no older transaction can commit.
//
// On a Galera cluster a lock ends at its server. There the last statement is UPDATE fence
// SET writes = writes + 1 WHERE epoch and owner are ours: of it and a take-over through
// another server only the one that is certified first commits.
//
// # How rows are written
//
// A row may have absent columns (row.Absent). The rows of a batch that lack the same
// ones are one group, written by a variant of the plan without those columns.
// Complete rows and deletions come first. A row that lacks a column without which the table
// accepts no new row is written by an update, and refused if there is none to update: an
// upsert would be refused in either case. Rows that replace are deleted and inserted
// within a savepoint, so that a refused one keeps the old row.
//
// PostgreSQL gets a batch as one array a column or, from a thousand rows on, by COPY to
// a temporary table, from which existing rows are updated and
// the others upserted; MySQL prepared statements of many rows; SQLite a prepared
// statement of one row, many times.
//
// # Rows that are refused
//
// A batch is tried at once. If it is refused, or rows of its plan were of late, it goes in pieces,
// of which the database takes all rows or none. PostgreSQL gets all pieces in one message each
// round, with a savepoint behind each; the others a statement a piece. The row that an error is
// about is told by its message or by how many rows the server had begun (a temporary sequence of
// PostgreSQL and a variable of MariaDB count them, which outlive what is undone). That is a hint:
// the row is set aside, and in the end tried by itself. What is refused then is a dead letter,
// with that error. Rows before it have passed, and are written together with those of other pieces.
// Where there is no hint the piece is halved. How large pieces are follows from the share of rows
// that is refused.
//
// To try each row that was set aside by itself costs MariaDB and MySQL a round trip each, so one
// INSERT IGNORE asks first, within a savepoint, whether they would take any of them: it writes
// every row that INSERT would write. If it writes none, all are dead letters.
// What a trigger writes meanwhile into a table of an engine without transactions stays, as it does whenever
// a row of its table is refused.
//
// # When an answer is lost
//
//	lost at               the database                apply the same batch again
//	before COMMIT sent    rolls back                  applies it
//	COMMIT sent           committed, or rolls back    the ledger decides
//
// The second case is conclusive because the ledger has a unique key: the insert
// of the new transaction waits until the old one, wherever its COMMIT is, has
// ended, and then either conflicts or does not. A batch without a ledger row
// (Part -1) is idempotent by nature; its dead letters have an id made from their
// content.
//
// A COPY is first in its transaction, before it locks anything for which others
// wait: in the server's view a client in the middle of a COPY is not idle.
//
// The server disconnects a leader that froze inside a transaction: the
// limits of waiting for a lock and of one statement are half of the lease, that
// of idling in a transaction a quarter. SQLite has no server to do so. There
// others find the database busy until the frozen process continues or dies. Since
// no node could take the fence meanwhile, its commit is right.
//
// # Behind a pooler
//
// A pooler in transaction mode may give each transaction another session of the server. A batch
// needs its transaction and nothing of the session, with PostgreSQL always: limits and durability
// are set in the transaction. Behind a pooler no statement has a name, and temporary tables end
// with the transaction. Why each promise holds there:
//
//   - The check of the fence and COMMIT go to one session: a pooler keeps it for a transaction until
//     the server says that it has ended. If that session is lost, the pooler closes our connection;
//     no COMMIT reaches another one.
//   - The outcome of a COMMIT is looked up in a transaction of its own, by the fence's row and the
//     ledger's key. These locks are of the old transaction, whoever holds its connection.
//   - A dead leader's open transaction: when our connection ends, the pooler closes the server's and
//     the server rolls back. If our host or process freezes, or the pooler does not notice, the
//     limits of the transaction itself end it in the server: it holds them, not the pooler.
//   - What waits in the pooler for a session, of a leader that is gone by then, may still begin and
//     write. It is rolled back: COMMIT is sent only after the answer to the check of the fence.
//   - The lock of the migrations is their transaction's, and goes with it.
//
// # What a table must be
//
// MySQL and MariaDB: a transactional engine. INSERT … ON DUPLICATE KEY UPDATE
// reacts to every unique index, not only to the job's key, and would change
// whichever row conflicts. The statement compares that row's key and
// refuses a row that collides with another one in a second unique index.
// SQLite: a foreign key that is DEFERRED is checked by COMMIT only, which cannot
// name the row at fault. So each row is checked as it is written; a key of columns
// that the job does not write fails its batch as a whole.
package sql
