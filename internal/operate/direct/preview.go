package direct

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/daemon/tasks"
	"baton/internal/flush"
	"baton/internal/flush/mapping"
	"baton/internal/flush/sql"
	"baton/internal/redisconn"
)

// Preview describes the work that a run of a job would do, and the problems that it would meet.
type Preview struct {
	Job      string `json:"job"`
	Database string `json:"database"`
	flush.Preview
}

// These are the parts of a Preview.
type (
	// PreviewColumn says how one column is written.
	PreviewColumn = mapping.ColumnView
	// PreviewRow is a row that would be written, or a record that would not be written.
	PreviewRow = flush.PreviewRow
)

// previewWithin is the time limit of a whole preview, even if Redis or the database hangs.
const previewWithin = 30 * time.Second

// PreviewJob returns the work that a run of a job would do now, with up to n records as examples. It reads Redis and the database, and
// changes neither.
func PreviewJob(ctx context.Context, c config.Config, name string, n int) (p Preview, err error) {
	f, err := openFlush(c, name)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	ctx, cancel := context.WithTimeout(ctx, previewWithin)
	defer cancel()
	flushed, err := tasks.Flush(f.job, f.store)
	if err != nil {
		return p, fmt.Errorf("job %q: %w", name, err)
	}
	flushed.NodeID, flushed.Sink = c.Node.ID, f.database
	pipeline, err := flush.New(flushed)
	if err != nil {
		return p, err
	}
	return Preview{Job: name, Database: f.job.Flush.To.Database, Preview: pipeline.Preview(ctx, n)}, nil
}

// openedFlush is a flush job that was opened for reading without a leader. It contains the source and the database of the job.
type openedFlush struct {
	job      config.Job
	site     *Site
	store    *redisconn.Store
	database *sql.Store
}

// openFlush opens the source and the database of a flush job.
func openFlush(c config.Config, name string) (f openedFlush, err error) {
	if f.site, err = Open(c); err != nil {
		return f, err
	}
	if _, err = f.site.session().under(name); err == nil {
		f.job = c.Jobs[slices.IndexFunc(c.Jobs, func(j config.Job) bool { return j.Name == name })]
		if f.job.IsCommand() {
			err = fmt.Errorf("job %q runs a command: only a flush has a preview", name)
		}
	}
	if err == nil {
		f.store = f.site.session().Stores.Of(f.job)
		f.database, err = site.OpenDatabase(c, f.job.Flush.To.Database)
	}
	if err != nil {
		return f, errors.Join(err, f.site.Close())
	}
	return f, nil
}

func (f openedFlush) close() error { return errors.Join(f.database.Close(), f.site.Close()) }
