package site

import "baton/internal/id"

// NewID returns a UUID v4 for a term, a run or a batch.
func NewID() (string, error) { return id.New() }
