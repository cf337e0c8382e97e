package site

import "baton/internal/id"

// NewID makes a UUID v4: for terms, runs and batches.
func NewID() (string, error) { return id.New() }
