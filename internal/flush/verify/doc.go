// Package verify compares the present content of a source with the rows of its table.
//
// It reads both sides and writes to neither. The mapping of the flush itself makes the row of a record. That row is compared with the one
// in the table, value by value, by the type of the column.
//
// A difference may be a change that is not flushed yet. So a difference counts only if it outlasts a run of the flush that began after it
// was found, and if the record was the same before and after the row was read. A record that changes at every reading is counted apart.
package verify
