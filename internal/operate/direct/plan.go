package direct

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"baton/internal/config"
	"baton/internal/daemon/tasks"
	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/verify"
	"baton/internal/operate/direct/progress"
)

// Plan describes the changes that a pass over all keys would make to the whole table of a job.
type Plan struct {
	Job      string `json:"job"`
	Database string `json:"database"`
	Table    string `json:"table"`
	Keys     string `json:"keys"` // the key pattern, whose rows belong to the job
	Records  int64  `json:"records"`
	Rows     int64  `json:"rows"` // the number of rows that were looked up in Redis
	Insert   int64  `json:"insert"`
	Change   int64  `json:"change"`
	Delete   int64  `json:"delete"`
	Unfit    int64  `json:"unfit"` // the number of records that would be dead letters
	// Moving is the number of records that changed at each reading.
	Moving int64 `json:"moving,omitzero"`
	// MaxPct is a percentage of the rows. A pass deletes no rows at all if it would delete a larger part. With 0 a pass never deletes rows.
	MaxPct int `json:"max_pct"`
	// Stops means that the pass would stop because of MaxPct.
	Stops    bool          `json:"stops"`
	Examples []PlanExample `json:"examples,omitempty"`
	Notes    []string      `json:"notes,omitempty"`
}

// These are the parts of a Plan.
type (
	// PlanExample is one row that would be inserted (missing), changed (different) or deleted (extra).
	PlanExample = verify.Example
	// PlanColumn is a column of a PlanExample that would be changed.
	PlanColumn = verify.Column
)

// PlanOptions limits the work of making a plan.
type PlanOptions struct {
	Rate     int // maximum number of keys and rows per second; 0 means no limit
	Examples int // maximum number of examples of each kind
	// Resume continues the last preview of the job that was interrupted, if the job's mapping and its table are still the same.
	Resume bool
	// Progress, if set, is called after every few keys.
	Progress func(part float64, records, rows int64)
}

// PlanJob compares all keys of a job with all rows of its table, and changes neither. It uses the comparison of verifications, so the
// memory that it needs is limited.
func PlanJob(ctx context.Context, c config.Config, name string, o PlanOptions) (p Plan, err error) {
	f, err := openFlush(c, name)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	j := f.job
	if err := tasks.CheckKeys(j); err != nil {
		return p, err
	}
	flushed, err := tasks.Flush(j, f.store)
	if err != nil {
		return p, fmt.Errorf("job %q: %w", name, err)
	}
	p = Plan{Job: name, Database: j.Flush.To.Database, Table: j.Flush.To.Table, Keys: j.Flush.From.Key, MaxPct: flushed.VanishedPct}
	var reached *progress.Progress
	checker, err := tasks.Checker(ctx, j, f.store, f.database, verify.Options{
		Rate: o.Rate, Examples: o.Examples,
		Progress: func(s verify.State) error {
			reached.Reached(ctx, s)
			if o.Progress != nil {
				o.Progress(s.Part, s.Result.Records, s.Result.Rows)
			}
			return context.Cause(ctx)
		},
	})
	if errors.Is(err, flush.ErrNoTable) && flushed.Create {
		p.Notes = []string{"there is no table yet: the first run makes it, and inserts every key"}
		return p, nil
	}
	if err != nil {
		return p, err
	}
	var from verify.State
	if reached, from, err = openProgress(ctx, f, flushed, c.Node.ID, o); err != nil {
		return p, err
	}
	state, err := checker.Run(ctx, from)
	err = reached.End(ctx, state, err)
	r := state.Result
	p.Records, p.Rows, p.Unfit, p.Moving = r.Records, r.Rows, r.Unfit, r.Moving
	p.Insert, p.Change, p.Delete = r.Missing, r.Different, r.Extra
	p.Examples, p.Notes = r.Examples, slices.Clip(r.Notes)
	if flushed.Inputs.Guarantee == row.ByPass && p.Delete > 0 {
		p.Notes = append(p.Notes, "a scan deletes rows with a generation only, so a row that no scan has ever written stays")
	}
	p.Notes = append(p.Notes, reached.Notes...)
	p.Stops = p.MaxPct > 0 && p.Delete*100 > p.Rows*int64(p.MaxPct)
	return p, err
}
