// Package row defines the data of a flush: records, values, rows, tables and dead letters. The package has no I/O.
//
//	Record      raw texts of one record, in the order of the source's inputs; Gone means that the record's row no longer exists
//	Column      a column as the catalogue has it, with its kind and its limits
//	Reader      makes the value of a column out of a text
//	Value       one value, already of the column's kind; the zero Value is NULL, [Absent] is a column that is not written
//	Plan        the table, the written columns, the key and the operation of each column
//	Row         the values of one row, and the record that they were made of
//	DeadLetter  a record that fits no row, as JSON, with the reason
//
// The invariants:
//
//   - A text becomes a value exactly, or not at all. A reader never rounds, cuts or guesses: a number with too many digits, a text
//     that is too long and a time that is finer than the column are errors.
//   - [Compare] orders the values of one column. Two keys with equal values are the same key. [Value.Prefix] returns a number of 64
//     bits with the same order, so that a sort rarely reads the values. If two of these numbers are equal, the values may differ.
//   - A dead letter loses nothing. [ParseRecordJSON] is the inverse of [RecordJSON], also for bytes that JSON cannot represent.
//
// What fails, and what then:
//
//   - A text does not fit its column: the reader's error is the reason of the dead letter. The other records of the page are written.
//   - The source could not read a record: the reason of the dead letter is [Record].Err.
//   - The database cannot hold a large dead letter: [CutRecordJSON] shortens its texts and marks them. A cut record cannot be
//     replayed, and ParseRecordJSON says so with ErrCutRecord.
package row
