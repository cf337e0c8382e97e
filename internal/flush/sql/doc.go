// Package sql writes batches into databases, each batch in one transaction. It implements the Sink of package flush. A Dialect contains the
// differences of one kind of database, and each Dialect has its own package.
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
// A batch that begins before its turn (flush.Batch.AwaitTurn) writes its rows first. It is entered into the ledger when its turn has come.
//
// TakeOver commits "UPDATE fence SET epoch WHERE epoch < ours". A batch that has read its fence holds a shared lock on that row until its
// COMMIT is done, so TakeOver waits for the batch. A batch that has not read its fence yet finds the new epoch and rolls back. After
// TakeOver has returned, no older transaction can commit.
//
// On a Galera cluster a lock is valid on one server only. Therefore the last statement there is "UPDATE fence SET writes = writes + 1 WHERE
// epoch and owner are ours". If it conflicts with a takeover through another server, only the transaction that is certified first commits.
//
// # How rows are written
//
// A row may have absent columns (row.Absent). The rows of a batch that lack the same columns form a group, which is written by a variant of
// the plan without those columns. Complete rows and deletions are written first. A row may lack a column that the table requires for a new
// row. Such a row is written by an update, and refused if there is no row to update, because an upsert would be refused in either case. A
// row that replaces an old row is written by a deletion and an insert within a savepoint. If the new row is refused, the old row stays.
//
// PostgreSQL gets a batch as one array for each column. A batch of a thousand rows or more is sent by COPY to a temporary table. From that
// table the existing rows are updated and the other rows upserted. MySQL gets prepared statements of many rows. SQLite gets a prepared
// statement of one row, which is executed once for each row.
//
// # Rows that are refused
//
// A batch is first tried as a whole, unless rows of its plan were refused recently. If rows were refused recently, or if the whole batch is
// refused, the batch is written in pieces: the database accepts all rows of a piece, or no row of it. PostgreSQL gets all pieces of a round
// in one message, with a savepoint after each piece. The other databases get one statement for each piece. The error's message, or the
// number of rows that the server had begun, points to the refused row. (A temporary sequence of PostgreSQL and a variable of MariaDB count
// these rows; a rollback does not reset the counters.) The message and the number are only hints, so the row is set aside, and tried alone
// at the end. If it is refused again, it becomes a dead letter with that error. The rows before the refused row have passed, and are
// written together with the passed rows of other pieces. Without a hint the piece is halved. The size of the pieces depends on the share of
// refused rows.
//
// On MariaDB and MySQL, trying such a row alone costs a round trip. So one INSERT IGNORE within a savepoint first finds out whether the
// database would accept any of these rows, because INSERT IGNORE writes every row that INSERT would write. If it writes no row, all of them
// become dead letters. If a trigger writes into a table of an engine without transactions, the rows in that table stay. This also happens
// without baton whenever a row of the trigger's table is refused.
//
// # When an answer is lost
//
//	lost at               the database                apply the same batch again
//	before COMMIT sent    rolls back                  applies it
//	COMMIT sent           committed, or rolls back    the ledger decides
//
// The second case is conclusive because the ledger has a unique key. The insert of the new transaction waits until the old transaction has
// ended, whatever the state of its COMMIT is. If the old transaction has committed, the insert conflicts. A batch without a ledger row
// (Part -1) is idempotent by nature, and the ids of its dead letters are made from their content.
//
// A COPY is the first statement of its transaction, before the transaction holds a lock that others wait for. Otherwise a frozen client
// could hold that lock for long, because for the server a client in the middle of a COPY is not idle.
//
// The server disconnects a leader that froze inside a transaction. The time limit for a lock and for one statement is half of the duration
// of the lease. The time limit for an idle transaction is a quarter of that duration. SQLite has no server that could disconnect a
// process, so other processes find the database busy until the frozen process continues or ends. No node can claim the fence in that time,
// so the commit of the frozen process is correct.
//
// # Behind a pooler
//
// A pooler in transaction mode may give each transaction another session of the server. Therefore a batch needs only its transaction, and
// no state of the session. On PostgreSQL this is always so, because time limits and durability are set in the transaction. Behind a pooler
// no statement has a name, and temporary tables end with the transaction. Behind a pooler, the promises of this package hold for these
// reasons:
//
//   - The check of the fence and COMMIT go to one session, because a pooler keeps the session for a transaction until the server says
//     that the transaction has ended. If that session is lost, the pooler closes our connection, and no COMMIT reaches another
//     session.
//   - A separate transaction finds out the outcome of a COMMIT, by the fence's row and the ledger's key. The old transaction holds the
//     locks on this row and this key, no matter which process has its connection.
//   - If a leader dies, its connection ends, so the pooler closes its own connection to the server, and the server rolls back the
//     open transaction. If the leader's host or process freezes, or the pooler does not notice the end, the time limits of the
//     transaction end it. The server enforces these limits, not the pooler.
//   - A transaction that waits in the pooler for a session may still begin and write after its leader has ended. The transaction is
//     rolled back, because COMMIT is sent only after the answer to the check of the fence.
//   - The lock of the migrations belongs to their transaction, and ends with it.
//
// # Requirements of a table
//
// On MySQL and MariaDB a table needs a transactional engine. INSERT … ON DUPLICATE KEY UPDATE reacts to every unique index, not only to the
// job's key, and would change any row that conflicts. Therefore the statement compares the key of the existing row, and refuses a row that
// conflicts with another row in a second unique index. On SQLite a foreign key that is DEFERRED is checked only at COMMIT, and COMMIT
// cannot name the row at fault. So each row is checked when it is written. If a deferred foreign key has columns that the job does not
// write, its violation fails the whole batch.
package sql
