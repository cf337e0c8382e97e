// Package verify compares what a source has now with the rows of its table.
//
// It reads both sides and writes to neither. A record becomes a row by the mapping of the flush
// itself, and the row is compared with what the table has, value by value, by the type of the column.
//
// What differs may be on its way. So a difference counts only if it outlasts a run of the flush that
// began after it was found, and if the record was the same before and after the row was read.
// A record that never rests is counted apart.
package verify
