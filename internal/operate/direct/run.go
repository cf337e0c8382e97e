package direct

import (
	"context"
	"errors"
	"fmt"

	"baton/internal/daemon/site"
	"baton/internal/diagnose"
	"baton/internal/job"
	"baton/internal/operate"
	"baton/internal/redisledger"
)

// Run returns the current state of a run, also of a run that waits for another run. Without an id it returns the run in progress, or else
// the last run.
func (s *Site) Run(ctx context.Context, name, id string) (operate.JobRun, error) {
	return asking(ctx, s, func(l session) (operate.JobRun, error) { return l.run(ctx, name, id) })
}

func (l session) run(ctx context.Context, name, id string) (operate.JobRun, error) {
	v, err := l.under(name)
	if err != nil {
		return operate.JobRun{}, err
	}
	if id == "" {
		if id, err = v.lastRun(ctx, name); err != nil {
			return operate.JobRun{}, err
		}
	}
	run, refused, err := v.findRun(ctx, name, id, latest)
	if run == nil && refused == "" && err == nil {
		if v.queued(ctx, redisledger.Request{ID: id}) {
			return operate.JobRun{Job: name, Run: diagnose.Run{ID: id, State: operate.StateQueued}, Queued: true}, nil
		}
		run, refused, err = v.findRun(ctx, name, id, searched)
	}
	switch {
	case err != nil:
		return operate.JobRun{}, err
	case refused != "":
		return operate.JobRun{}, &operate.Coded{Code: "run_refused", Kind: operate.ErrRefused, Err: errors.New(refused)}
	case run == nil:
		return operate.JobRun{}, noRun(name, id)
	}
	now := operate.JobRun{Job: name, Run: *run}
	if run.State == string(job.StateRunning) {
		p, err := v.electionState(ctx)
		now.Leaderless = err == nil && p.Owner != run.Owner
	}
	return now, nil
}

// lastRun returns the id of the run in progress, or else the id of the last run.
func (v View) lastRun(ctx context.Context, name string) (id string, err error) {
	s, err := v.state(ctx, name)
	if err != nil {
		return "", err
	}
	j := diagnose.Job{Name: name}
	fillJob(&j, s)
	return operate.LastRun(j)
}

// noRun returns an [operate.ErrNoRun] with the command that lists the runs.
func noRun(name, id string) error {
	return fmt.Errorf("%w: the history of job %q has no run %s; baton job show %s lists the runs", operate.ErrNoRun, name, id, name)
}

// Output returns a piece of a run's output that begins at the offset from, or at the oldest kept byte if that byte is later. An empty piece
// means that there is no more output.
func (s *Site) Output(ctx context.Context, name, id string, from int64) (operate.Output, error) {
	return asking(ctx, s, func(l session) (operate.Output, error) {
		v, err := l.under(name)
		if err != nil {
			return operate.Output{}, err
		}
		ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
		defer cancel()
		piece, err := v.Ledger.ReadOutput(ctx, name, id, from)
		return operate.Output{Text: string(piece.Text), Offset: piece.Offset, Next: piece.Offset + int64(len(piece.Text))}, err
	})
}

// mostOutput is slightly above the maximum size of a run's kept output, in bytes.
const mostOutput = 2 << 20

// Printed returns a run's output.
func (s *Site) Printed(ctx context.Context, name, runID string) (operate.Printed, error) {
	return asking(ctx, s, func(l session) (o operate.Printed, err error) {
		v, err := l.under(name)
		if err != nil {
			return o, err
		}
		// The state is read before the output. So if the state says that the run has ended, the output is complete.
		run, err := l.run(ctx, name, runID)
		if !operate.IsCommand(s.Configured(ctx), name) {
			return o, operate.NoOutput(name)
		}
		if err != nil {
			return o, err
		}
		o.Running = run.Run.State == string(job.StateRunning)
		for at, first := int64(0), true; len(o.Text) < mostOutput; first = false {
			piece, err := v.Ledger.ReadOutput(ctx, name, run.Run.ID, at)
			if err != nil {
				return o, err
			}
			if first {
				o.Dropped = piece.Offset
			}
			if len(piece.Text) == 0 {
				break
			}
			if piece.Offset != at && !first { // the ledger has dropped the output before this piece
				o.Text, o.Dropped = "", piece.Offset
			}
			o.Text += string(piece.Text)
			at = piece.Offset + int64(len(piece.Text))
		}
		if o.Text == "" && !o.Running {
			o.Text = run.Run.Output // the history contains the end of the output
		}
		return o, nil
	})
}
