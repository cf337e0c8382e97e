package direct

import (
	"context"
	"errors"
	"fmt"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/daemon/tasks"
	"baton/internal/flush"
	"baton/internal/flush/mapping"
)

// Preview is what a job would do, and what is wrong.
type Preview struct {
	Job      string `json:"job"`
	Database string `json:"database"`
	flush.Preview
}

// What a Preview consists of.
type (
	// PreviewColumn is how one column is written.
	PreviewColumn = mapping.ColumnView
	// PreviewRow is one row as it would be written, or the record that would not be.
	PreviewRow = flush.PreviewRow
)

// previewWithin bounds the looking, whatever Redis and the database do.
const previewWithin = 30 * time.Second

// PreviewJob reports what a run of a job would do now, with up to n records as examples.
// It asks Redis and the database, and changes nothing in either.
func PreviewJob(ctx context.Context, c config.Config, name string, n int) (p Preview, err error) {
	s, err := Open(c)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if _, err := s.session().under(name); err != nil {
		return p, err
	}
	var j config.Job
	for _, one := range c.Jobs {
		if one.Name == name {
			j = one
		}
	}
	if j.IsCommand() {
		return p, fmt.Errorf("job %q runs a command: only a flush can be looked at beforehand", name)
	}
	ctx, cancel := context.WithTimeout(ctx, previewWithin)
	defer cancel()
	db, err := site.OpenDatabase(c, j.Flush.To.Database)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	flushed, err := tasks.Flush(j, s.session().Stores.Of(j))
	if err != nil {
		return p, fmt.Errorf("job %q: %w", name, err)
	}
	flushed.NodeID, flushed.Sink = c.Node.ID, db
	pipeline, err := flush.New(flushed)
	if err != nil {
		return p, err
	}
	return Preview{Job: name, Database: j.Flush.To.Database, Preview: pipeline.Preview(ctx, n)}, nil
}
