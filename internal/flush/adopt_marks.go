package flush

import (
	"context"
	"errors"
	"fmt"

	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
)

// Recorder is a Sink that reads records beside the place of a job, without a fence.
type Recorder interface {
	Sink
	Recorded(ctx context.Context, job, name string) (string, error)
}

// ErrUnaccepted says that keys must not be marked, since rows of the table wait to be accepted as the job's.
var ErrUnaccepted = errors.New("rows of the table are not accepted as the job's")

// MayMark fails if keys must not be marked: the next run takes a marked key for one that the application has changed, and
// writes its row at once. Nothing is marked for a scan. deletes says that rows without a record are marked, too.
func (p *Pipeline) MayMark(ctx context.Context, deletes bool) error {
	mode := p.cfg.Adopt.Mode
	records, ok := p.cfg.Sink.(Recorder)
	if p.cfg.Adopt.Differ == nil || !ok || p.cfg.Inputs.Guarantee == row.ByPass || mode == AdoptDelete ||
		mode == AdoptOverwrite && !deletes {
		return nil
	}
	digest, err := p.Digest(ctx)
	if err != nil {
		return err
	}
	text, err := records.Recorded(ctx, p.cfg.Job, AdoptionName(digest))
	switch {
	case err != nil:
		return err
	case mode == AdoptInsertOnly || mode == AdoptOverwrite && text != adoptAdopted:
		return fmt.Errorf("table %q: %w, and `adopt: %s` leaves them as they are: no key was marked",
			p.cfg.Mapping.Table, ErrUnaccepted, mode)
	case text == adoptAdopted:
		return nil
	}
	return fmt.Errorf("table %q: %w, or the first pass of job %q has not ended: no key was marked. `baton job preview %s --all` "+
		"shows the plan of a pass, `baton job accept %s` accepts it", p.cfg.Mapping.Table, ErrUnaccepted, p.cfg.Job, p.cfg.Job, p.cfg.Job)
}

// Digest identifies the mapping of the job as its table resolves it.
func (p *Pipeline) Digest(ctx context.Context) (string, error) {
	table, err := p.cfg.Sink.Table(ctx, p.cfg.Mapping.Table)
	if err != nil {
		return "", fmt.Errorf("read the catalogue of table %q: %w", p.cfg.Mapping.Table, err)
	}
	m, err := mapping.Compile(p.cfg.Mapping, table, p.cfg.Inputs)
	if err != nil {
		return "", err
	}
	return p.digest(m), nil
}
