// Package mysql is the Dialect of MySQL and MariaDB. Package stdsql has the sessions, and package flush/sql the protocol of a batch.
//
//	database      the pool, and the server's settings that a flush relies on
//	writer        writes rows by prepared statements of up to a thousand rows
//	compiledPlan  the texts of a plan's statements, by their number of rows
//	connection    a connection of the driver that can be cut from another goroutine
//	Culprit       finds the row because of which a statement was refused
//	probe         one INSERT IGNORE that shows whether any of some rows could be written; its writes are undone
//
// The invariants:
//
//   - Exact numbers are sent as texts and cast to DECIMAL where they are added, because the server would add a text as a float.
//   - Tables of baton use a collation that compares texts by their bytes, as Redis does.
//   - The position of a refused row is only a hint. The row at that position is tried alone before it becomes a dead letter.
//
// What fails, and what then:
//
//   - If a statement is refused, MariaDB numbers the row. If the server does not number rows, the statement counts its rows in a variable,
//     which is slower. MySQL has neither row numbers nor such a variable, so the piece is halved.
//   - If the server's numbers repeatedly point to the first row, as with triggers, the numbers are no longer trusted for that plan.
//   - If the server has ended the transaction because of the refusal, as after a deadlock, the refusal counts as an error of the whole
//     batch.
//   - On a Galera cluster a lock is valid on one server only, so flush/sql relies on the certification.
package mysql
