// Package mapping turns the records of a source into the rows of a table. The package has no I/O, because the catalogue is an argument.
//
//	Spec       the mapping of a job's configuration
//	Compile    matches it with the catalogue of the table and the inputs of the source, once for each pipeline
//	Mapping    converts one record ([Mapping.Row]) or a page of them ([Mapping.Rows]); it never changes, and lanes share it
//	OnMissing  the treatment of a row whose record is gone: delete it, leave it, or set its columns to NULL
//	Vanished   the way back from a row of the table to its record, for sweeps
//	Space      the memory of a page's rows, used again for a later page
//
// The invariants:
//
//   - Compile reports all problems at once, each with the table, the column and the remedy. A Mapping that it returned fits the
//     catalogue.
//   - The rows of a page are unique by key, since one statement must not touch a row twice. They are sorted by key, which suits indexes
//     and prevents deadlocks.
//   - Records of one key are merged in the order of their arrival. A later value replaces an earlier one, an increment is added, and a
//     deletion removes everything before it. With a dedupe key the first record stays.
//   - No value is changed to fit: that is the rule of package row.
//
// What fails, and what then:
//
//   - A record does not fit, or cannot be merged: it becomes a dead letter that names the column. The other records are written.
//   - A record lacks all inputs: it gives no column a value, so it becomes a dead letter, too.
//   - A record of a sum is gone: a sum cannot be deleted exactly, so the record becomes a dead letter.
package mapping
