package direct

import (
	"context"
	"errors"
	"fmt"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/tasks"
	"baton/internal/flush"
)

// Accepted tells how many rows that a job never wrote its next pass may change and delete, and who accepted that.
type Accepted struct {
	Job     string `json:"job"`
	Table   string `json:"table"`
	Keys    string `json:"keys"`    // their pattern: every row that matches is the job's from now on
	Changes int64  `json:"changes"` // at most
	Deletes int64  `json:"deletes"`
	By      string `json:"by"`
}

// AcceptJob accepts the changes and deletions that a pass of a job refused to make. It records them in the job's database, for the job's
// present mapping: the leader makes another pass, which changes and deletes no more than that.
func AcceptJob(ctx context.Context, c config.Config, name, by string) (a Accepted, err error) {
	f, err := openFlush(c, name)
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	flushed, err := tasks.Flush(f.job, f.store)
	if err != nil {
		return a, fmt.Errorf("job %q: %w", name, err)
	}
	flushed.NodeID, flushed.Sink = c.Node.ID, f.database
	pipeline, err := flush.New(flushed)
	if err != nil {
		return a, err
	}
	digest, err := pipeline.Digest(ctx)
	if err != nil {
		return a, err
	}
	record := flush.AdoptionName(digest)
	was, err := f.database.Recorded(ctx, name, record)
	if err != nil {
		return a, err
	}
	text, err := flush.Accept(was, by, time.Now())
	if err != nil {
		return a, fmt.Errorf("job %q: %w: no pass has found rows that the job never wrote and that it would change or delete", name, err)
	}
	waits, who, _ := flush.ParseAccepted(text)
	a = Accepted{Job: name, Table: f.job.Flush.To.Table, Keys: f.job.Flush.From.Key,
		Changes: waits.Changes, Deletes: waits.Deletes, By: who}
	if text == was {
		return a, nil
	}
	if err := f.database.Replace(ctx, name, record, was, text); errors.Is(err, flush.ErrMoved) {
		return a, fmt.Errorf("job %q: a pass has counted again meanwhile: look at the plan, and accept once more", name)
	} else if err != nil {
		return a, err
	}
	return a, nil
}
