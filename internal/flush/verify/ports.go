package verify

import (
	"context"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

// Source reads a job's records without a stage. The caller may repeat each method.
type Source interface {
	// Name returns the pattern of the keys.
	Name() string
	// Keys returns a few keys of the source that follow a place. The place "" is before the first key. Keys may return a key twice. If the
	// servers that the place names have changed, Keys begins again with the keys of the new servers, and the page says so in Again.
	Keys(ctx context.Context, place string) (KeyPage, error)
	// Read yields the records of keys, in any order. For a missing key it yields no record, or a record that is Gone.
	Read(ctx context.Context, keys []string, yield func([]row.Record) error) error
	// Named returns the record of a key with only those inputs that follow from the key's name.
	Named(key string) row.Record
	// KeyOf returns the source key of a record that has only the inputs of the table's key.
	KeyOf(r *row.Record) string
	// Finds fails unless these inputs are enough for KeyOf and StillMissing.
	Finds(inputs []string) error
	// StillMissing returns which of the records do not exist now.
	StillMissing(ctx context.Context, records []row.Record) ([]row.Record, error)
	// Mark makes the flush write the rows of keys again. It returns ErrNoMarks if every run reads everything.
	Mark(ctx context.Context, keys []string) error
}

// KeyPage holds a few keys of a source.
type KeyPage struct {
	Keys []string
	Next string  // the place after these keys; "" after the last key
	Part float64 // the share of all keys that lie before Next, from 0 to 1
	// Looked is the number of keys that the server has read for this page, including keys with other names.
	Looked int
	// Missed is the reason why some keys may not have been returned at all, or nil. It is set only after the last key.
	Missed error
	// Again means that this page begins again with the first key of a server, because another process answers than the process that
	// returned the place. So keys of earlier pages may be returned again.
	Again bool
}

// Table is a database with the methods that a comparison of a job's table needs.
type Table interface {
	flush.Sink
	flush.KeyLister
	// ReadRows reads rows by their keys. It calls the function each for every row found, with the texts of the plan's columns, in any
	// order. Times are in UTC. ReadRows may also call that function for rows with other keys.
	ReadRows(ctx context.Context, p *row.Plan, keys [][]row.Value, each func(cells []row.Raw) error) error
	// Holds asks the database whether a row has this value in a column of the plan.
	Holds(ctx context.Context, p *row.Plan, key []row.Value, column int, value row.Value) (bool, error)
}
