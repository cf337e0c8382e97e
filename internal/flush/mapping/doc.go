// Package mapping turns the records of a source into the rows of a table: Compile matches
// a job's configuration with the catalogue, and a Mapping converts records, makes them
// unique by key and sorts them.
package mapping
