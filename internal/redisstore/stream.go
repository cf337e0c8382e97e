package redisstore

import (
	"context"
	"errors"
	"time"

	"baton/internal/flush"
)

// StreamOptions describe one stream that producers add to with XADD.
type StreamOptions struct {
	Job string
	Key string
	// Inputs are what a record consists of: fields of the entries, and "$id". "$id" wins
	// over a field of that name.
	Inputs []string
	// PageRows is the number of entries of a page, that is of a transaction. Default 5000.
	PageRows int
	// MemoryBudget bounds a page by a quarter of it, in bytes, and the replies that are
	// under way by a sixteenth, both by one entry more at most. Default 32 MiB.
	MemoryBudget int
	// OnGap is what happens when entries have gone unread: "stop" with flush.ErrGap, or
	// "continue" behind the gap. Default stop.
	OnGap string
	// Start is where the very first reading begins: "beginning", "end", or an id, behind
	// which it begins. Default beginning.
	Start string
	// Retain is how long entries stay that are in the database, by the time in their id.
	// nil: baton trims nothing.
	Retain *time.Duration
	// Observe is told every step (see Steps); its error ends the work there. For tests.
	Observe func(step string) error
}

// Stream reads one stream: a flush.Source that keeps its place in the database.
type Stream struct{ stagedKey }

// NewStream checks the options; it does not connect.
func NewStream(store *Store, o StreamOptions) (*Stream, error) {
	return nil, errors.New("streams cannot be read yet")
}

// Wait returns when entries may be pending.
func (s *Stream) Wait(context.Context) error { return errors.New("streams cannot be read yet") }

// Peek reads the first n entries that are pending.
func (s *Stream) Peek(context.Context, int) ([]flush.Record, error) { return nil, nil }
