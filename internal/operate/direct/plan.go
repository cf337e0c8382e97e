package direct

import (
	"context"
	"errors"
	"fmt"

	"baton/internal/config"
	"baton/internal/daemon/tasks"
	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/verify"
)

// Plan is the effect that a pass over all keys would have on the table of a job, as a whole.
type Plan struct {
	Job      string `json:"job"`
	Database string `json:"database"`
	Table    string `json:"table"`
	Keys     string `json:"keys"` // their pattern, whose rows are the job's
	Records  int64  `json:"records"`
	Rows     int64  `json:"rows"` // rows searched for in Redis
	Insert   int64  `json:"insert"`
	Change   int64  `json:"change"`
	Delete   int64  `json:"delete"`
	Unfit    int64  `json:"unfit"` // records that would be dead letters
	// Moving are records that changed at each reading.
	Moving int64 `json:"moving,omitzero"`
	// MaxPct: a pass deletes no row if it would delete a larger part of the rows, in percent. 0: it deletes none.
	MaxPct int `json:"max_pct"`
	// Stops: the pass would stop because of that bound.
	Stops    bool          `json:"stops"`
	Examples []PlanExample `json:"examples,omitempty"`
	Notes    []string      `json:"notes,omitempty"`
}

// The parts of a Plan.
type (
	// PlanExample is one row that would be inserted (missing), changed (different) or deleted (extra).
	PlanExample = verify.Example
	// PlanColumn is a column of it that would be changed.
	PlanColumn = verify.Column
)

// PlanOptions bound the making of a plan.
type PlanOptions struct {
	Rate     int // keys and rows a second at most; 0: no limit
	Examples int // of each kind
	// Progress, if set, is called every few keys.
	Progress func(part float64, records, rows int64)
}

// PlanJob compares all keys of a job with all rows of its table, and changes nothing in either. It is the comparison of a
// verification, so memory is bounded.
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
	checker, err := tasks.Checker(ctx, j, f.store, f.database, verify.Options{
		Rate: o.Rate, Examples: o.Examples,
		Progress: func(s verify.State) error {
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
	state, err := checker.Run(ctx, verify.State{})
	r := state.Result
	p.Records, p.Rows, p.Unfit, p.Moving = r.Records, r.Rows, r.Unfit, r.Moving
	p.Insert, p.Change, p.Delete = r.Missing, r.Different, r.Extra
	p.Examples, p.Notes = r.Examples, r.Notes
	if flushed.Inputs.Guarantee == row.ByPass && p.Delete > 0 {
		p.Notes = append(p.Notes, "a scan deletes rows with a generation only, so a row that no scan has ever written stays")
	}
	p.Stops = p.MaxPct > 0 && p.Delete*100 > p.Rows*int64(p.MaxPct)
	return p, err
}
