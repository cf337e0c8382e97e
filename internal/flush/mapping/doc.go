// Package mapping turns the records of a source into the rows of a table. It has no I/O: the catalogue is an argument.
//
//	Spec       the mapping of a job's configuration
//	Compile    matches it with the catalogue of the table and the inputs of the source, once for each pipeline
//	Mapping    converts one record ([Mapping.Row]) or a page of them ([Mapping.Rows]); it never changes, and lanes share it
//	OnMissing  what becomes of the row whose record is gone: delete it, leave it, or set its columns to NULL
//	Vanished   the way back from a row of the table to its record, for sweeps
//	Space      the memory of a page's rows, used again for a later page
//
// The invariants:
//
//   - Compile reports all problems at once, each with the table, the column and the remedy. A Mapping that it returned fits the
//     catalogue.
//   - The rows of a page are unique by key: one statement must not touch a row twice. They are sorted by key, which suits indexes
//     and prevents deadlocks.
//   - Records of one key are merged in the order of their arrival. A later value replaces an earlier one, an added one is summed,
//     and a deletion removes all that came before it. With a dedupe key the first record stays.
//   - No value is changed to fit: that is the rule of package row.
//
// What fails, and what then:
//
//   - A record does not fit, or cannot be merged: it becomes a dead letter that names the column, and the rest goes on.
//   - A record has none of the inputs: it gives no column a value, so it is a dead letter, too.
//   - A record of a sum is gone: a sum cannot be deleted exactly, so it is a dead letter.
package mapping
