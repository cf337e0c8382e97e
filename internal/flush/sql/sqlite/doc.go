// Package sqlite is the Dialect of SQLite. Package stdsql has the sessions, and package flush/sql the protocol of a batch.
//
//	database      one file, with one session for writing; the catalogue is read beside it
//	writer        one prepared statement for one row, executed many times
//	compiledPlan  the statements of a plan, and the deferred foreign keys that its rows may break
//	brokenKey     a row that a deferred key would refuse at COMMIT
//
// The invariants:
//
//   - A transaction begins with BEGIN IMMEDIATE, so it holds the only write lock from its beginning. The fence needs no lock of its own.
//   - The file is in WAL mode with synchronous=FULL: with NORMAL a loss of power could undo the last commits.
//   - SQLite checks a deferred key at COMMIT and does not name the row. So the key is asked for after each row, within a savepoint.
//
// What fails, and what then:
//
//   - The file is locked by another process: the session waits for the limit of locks, and the batch is tried again later.
//   - A row breaks a deferred key: it is refused as for any other key. If it refers to a later row of its batch, it is
//     tried again after that one.
//   - A process freezes within a transaction: no server disconnects it, so the file is busy until it continues or dies. Its commit is
//     right, since no node could take the fence meanwhile.
//   - The file cannot be opened: the error names it, and says so if its directory is missing.
package sqlite
