// Package mysql is the Dialect of MySQL and MariaDB. Package stdsql has the sessions, and package flush/sql the protocol of a batch.
//
//	database      the pool, and the server's settings that a flush relies on
//	writer        writes rows by prepared statements of up to a thousand rows
//	compiledPlan  the texts of a plan's statements, by their number of rows
//	connection    a connection of the driver that can be cut from another goroutine
//	Culprit       finds the row that a statement was refused for
//	probe         one INSERT IGNORE that tells whether any of some rows could be written; its writes are undone
//
// The invariants:
//
//   - Exact numbers are sent as texts and cast to DECIMAL where they are added: the server would add a text as a float.
//   - Tables of baton use a collation that tells texts apart by their bytes, as Redis does.
//   - The position of a refused row is only a hint. The row that it points to is tried alone before it becomes a dead letter.
//
// What fails, and what then:
//
//   - A statement is refused: MariaDB numbers the row. Where it does not, the statement counts its rows in a variable, which is slower.
//     MySQL has neither, and the piece is halved.
//   - The server's numbers point to the first row again and again, as with triggers: they are no longer trusted for that plan.
//   - The server has ended the transaction because of the refusal, as after a deadlock: the refusal counts as an error of the whole batch.
//   - On a Galera cluster a lock ends at its server: flush/sql lets the certification decide.
package mysql
