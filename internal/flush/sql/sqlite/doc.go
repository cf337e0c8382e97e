// Package sqlite contains the Dialect of SQLite. Package stdsql contains the sessions, and package flush/sql contains the protocol of a
// batch.
//
//	database      one file, with one session for writing; the catalogue is read on another connection
//	writer        one prepared statement for one row, executed many times
//	compiledPlan  the statements of a plan, and the deferred foreign keys that its rows may break
//	brokenKey     the error for a row that a deferred key would refuse at COMMIT
//
// The invariants:
//
//   - A transaction begins with BEGIN IMMEDIATE, so it holds the only write lock from its beginning. Therefore the fence needs no lock.
//   - The file is in WAL mode with synchronous=FULL, because with NORMAL a power failure could undo the last commits.
//   - SQLite checks a deferred key at COMMIT and does not name the row. So baton checks the key after each row, within a savepoint.
//
// What fails, and what then:
//
//   - If another process has locked the file, the session waits until the time limit for locks, and the batch is tried again later.
//   - If a row violates a deferred key, it is refused as for any other key. If it refers to a later row of its batch, it is tried again
//     after that row.
//   - If a process freezes within a transaction, no server disconnects it, so the file is busy until the process continues or ends. The
//     commit of that process is correct, because no node could claim the fence in that time.
//   - If the file cannot be opened, the error names the file, and says whether its directory is missing.
package sqlite
