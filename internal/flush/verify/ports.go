package verify

import (
	"context"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

// Source is what a job's records are read from, without a stage. All of its methods may be repeated.
type Source interface {
	// Name is the pattern of the keys.
	Name() string
	// Keys returns a few keys behind a place; "" is the place before the first key. A key may come twice.
	// If the servers are not those of the place any more, it begins again with what is theirs.
	Keys(ctx context.Context, place string) (Some, error)
	// Read yields the records of keys, in any order; a key that is not there has none, or one that is Gone.
	Read(ctx context.Context, keys []string, yield func([]row.Record) error) error
	// Named is a record of a key, of which nothing is known but its name.
	Named(key string) row.Record
	// KeyOf is the key of a record of which the inputs of the table's key are known.
	KeyOf(r *row.Record) string
	// Finds fails unless KeyOf and StillMissing need no more than these inputs.
	Finds(inputs []string) error
	// StillMissing returns which of the records do not exist now.
	StillMissing(ctx context.Context, records []row.Record) ([]row.Record, error)
	// Mark has the rows of keys flushed again. ErrNoMarks if every run reads everything.
	Mark(ctx context.Context, keys []string) error
}

// Some are a few keys of a source.
type Some struct {
	Keys []string
	Next string  // the place behind them; "" behind the last one
	Part float64 // which part of all keys lies before Next, from 0 to 1
	// Looked is how many keys the server has read for them, of any name.
	Looked int
	// Missed, behind the last one, says why some keys may not have been returned at all.
	Missed error
}

// Table is the database of a job.
type Table interface {
	flush.Sink
	flush.KeyLister
	// ReadRows reads rows by their keys and calls each for every one that there is, with the texts of
	// the plan's columns, in any order. A time is in UTC. It may call each for other rows, too.
	ReadRows(ctx context.Context, p *row.Plan, keys [][]row.Value, each func(cells []row.Raw) error) error
	// Holds asks the database whether a row has this value in a column of the plan.
	Holds(ctx context.Context, p *row.Plan, key []row.Value, column int, value row.Value) (bool, error)
}
