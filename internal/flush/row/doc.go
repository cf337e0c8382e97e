// Package row has the data that a flush moves: records as a source reads them, values and rows as a
// database writes them, the tables that hold these, and the dead letters of records that
// no table holds. A text becomes a value exactly, or not at all.
package row
