// Package mapping turns the records of a source into the rows of a table: Compile matches
// what a job says with what the catalogue says, and a Mapping converts records, makes them
// unique by key and sorts them.
package mapping
