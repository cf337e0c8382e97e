// Package verify compares the present content of a source with the rows of its table.
//
// A comparison only reads the source and the table. It converts a record to a row by the mapping of the flush. It compares that row with
// the row in the table, value by value, by the type of the column. A repair and a backfill only mark keys in the source, so that the flush
// writes the rows of these keys again.
//
// A difference may be a change that is not flushed yet. So a difference counts only if it still exists after a run of the flush that began
// after the difference was found. In the second comparison, the record must also be the same before and after the row is read. A record
// that changes at every reading is counted separately.
package verify
