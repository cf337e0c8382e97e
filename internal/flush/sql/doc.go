// Package sql writes batches into databases, each batch in one transaction. It is the Sink of package flush. The differences of databases
// are in a Dialect, each in a package of its own.
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
// A batch begun before its turn (flush.Batch.Turn) writes its rows first, and asks the ledger when its turn has come.
//
// Taking over is UPDATE fence SET epoch WHERE epoch < ours, committed. A batch
// that has read its fence holds the row shared until its COMMIT is done, so the
// taker waits for it. A batch that has not read it yet finds the new epoch and
// rolls back. Once TakeOver returns, no older transaction can commit.
//
// On a Galera cluster a lock ends at its server. There the last statement is UPDATE fence SET writes = writes + 1 WHERE epoch and owner
// are ours: if it meets a take-over through another server, only the one that is certified first commits.
//
// # How rows are written
//
// A row may have absent columns (row.Absent). The rows of a batch that lack the same ones are one group, written by a variant of the plan
// without those columns. Complete rows and deletions come first. A row may lack a column that the table requires of a new row. Such a
// row is written by an update, and refused if there is no row to update: an upsert would be refused in either case. Rows that replace are
// deleted and inserted within a savepoint, so that a refused one keeps the old row.
//
// PostgreSQL gets a batch as one array a column or, from a thousand rows on, by COPY to a temporary table; from that table the existing
// rows are updated and the others upserted. MySQL gets prepared statements of many rows; SQLite a prepared statement of one row, many
// times.
//
// # Rows that are refused
//
// A batch is tried as a whole, unless rows of its plan were refused lately. Then, or if it is refused, it goes in pieces: the database
// takes all rows of a piece, or no row of it. PostgreSQL gets all pieces of a round in one message, with a savepoint after each; the other
// databases get one statement a piece. The error's message, or the number of rows that the server had begun, points to the refused row.
// (A temporary sequence of PostgreSQL and a variable of MariaDB count them; a rollback does not reset these.) That is a hint: the row is
// set aside, and in the end tried alone. A row that is refused then is a dead letter, with that error. Rows before it have passed, and
// are written together with those of other pieces. Where there is no hint the piece is halved. The share of rows that is refused decides
// how large pieces are.
//
// On MariaDB and MySQL, each single try of such a row costs a round trip. So one INSERT IGNORE within a savepoint first finds out whether
// they would take any of these rows: it writes every row that INSERT would write. If it writes none, all are dead letters. Rows that a
// trigger writes meanwhile into a table of an engine without transactions stay, as they do whenever a row of the trigger's table is
// refused.
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
// A COPY is first in its transaction, before the transaction takes a lock that others wait for: in the server's view a client in the
// middle of a COPY is not idle.
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
//   - A transaction of its own finds out the outcome of a COMMIT, by the fence's row and the ledger's
//     key. The old transaction has these locks, no matter which process has its connection.
//   - A dead leader's open transaction: when our connection ends, the pooler closes the server's and
//     the server rolls back. If our host or process freezes, or the pooler does not notice, the
//     limits of the transaction itself end it in the server: it holds them, not the pooler.
//   - A transaction that waits in the pooler for a session may still begin and write after its
//     leader is gone. It is rolled back: COMMIT is sent only after the answer to the check of the fence.
//   - The lock of the migrations is their transaction's, and goes with it.
//
// # Requirements of a table
//
// MySQL and MariaDB: a transactional engine. INSERT … ON DUPLICATE KEY UPDATE
// reacts to every unique index, not only to the job's key, and would change
// whichever row conflicts. The statement compares that row's key and
// refuses a row that collides with another one in a second unique index.
// SQLite: a foreign key that is DEFERRED is checked by COMMIT only, which cannot
// name the row at fault. So each row is checked as it is written; a key of columns
// that the job does not write fails its batch as a whole.
package sql
