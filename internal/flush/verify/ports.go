package verify

import (
	"context"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

// Source reads a job's records, without a stage. All of its methods may be repeated.
type Source interface {
	// Name is the pattern of the keys.
	Name() string
	// Keys returns a few keys after a place; "" is the place before the first key. A key may come twice. If the servers of the place have
	// changed, it begins again with the keys of the new ones.
	Keys(ctx context.Context, place string) (Some, error)
	// Read yields the records of keys, in any order; a missing key has no record, or one that is Gone.
	Read(ctx context.Context, keys []string, yield func([]row.Record) error) error
	// Named is a record of a key with the inputs that its name alone gives.
	Named(key string) row.Record
	// KeyOf is the key of a record that has the inputs of the table's key.
	KeyOf(r *row.Record) string
	// Finds fails unless KeyOf and StillMissing need no more than these inputs.
	Finds(inputs []string) error
	// StillMissing returns which of the records do not exist now.
	StillMissing(ctx context.Context, records []row.Record) ([]row.Record, error)
	// Mark makes the flush write the rows of keys again. ErrNoMarks if every run reads everything.
	Mark(ctx context.Context, keys []string) error
}

// Some are a few keys of a source.
type Some struct {
	Keys []string
	Next string  // the place after them; "" after the last one
	Part float64 // the part of all keys that lies before Next, from 0 to 1
	// Looked is how many keys the server has read for them, of any name.
	Looked int
	// Missed, after the last key, is the reason why some keys may not have been returned at all.
	Missed error
}

// Table is the database of a job.
type Table interface {
	flush.Sink
	flush.KeyLister
	// ReadRows reads rows by their keys and calls each for every row found, with the texts of the plan's columns, in any order. A time is
	// in UTC. It may call each for other rows, too.
	ReadRows(ctx context.Context, p *row.Plan, keys [][]row.Value, each func(cells []row.Raw) error) error
	// Holds asks the database whether a row has this value in a column of the plan.
	Holds(ctx context.Context, p *row.Plan, key []row.Value, column int, value row.Value) (bool, error)
}
