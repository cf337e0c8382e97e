package direct

import (
	"context"
	"errors"
	"fmt"

	"baton/internal/daemon/site"
	"baton/internal/operate"
	"baton/internal/redisledger"
)

// pauseJob makes every leader skip a job until the job is resumed, or until the time o.Until if that is set. The job "" means all jobs.
func pauseJob(ctx context.Context, l session, o operate.Order) (operate.Outcome, error) {
	out, _, err := l.changePause(ctx, o.Job, func(ctx context.Context, l *redisledger.Ledger) (*redisledger.JobPause, error) {
		return l.Pause(ctx, o.Job, o.Signature(), o.Until)
	})
	if err != nil {
		return out, err
	}
	out.Code, out.Text = operate.CodeDone, whichJobs(o.Job)+" paused"
	if out.Was != nil {
		out.Text += " already; the reason was replaced"
	}
	if !o.Until.IsZero() {
		out.Text += ", until " + o.Until.In(l.zone(o.Job)).Format("2006-01-02 15:04:05 -07:00")
	}
	return out, nil
}

// resumeJob ends the pause of a job, or with the job "" the pause of all jobs. These two pauses do not end each other. Redis keeps no
// record of a pause that has ended. Only the log of the node that got the order shows it.
func resumeJob(ctx context.Context, l session, o operate.Order) (operate.Outcome, error) {
	out, views, err := l.changePause(ctx, o.Job, func(ctx context.Context, l *redisledger.Ledger) (*redisledger.JobPause, error) {
		return l.Resume(ctx, o.Job)
	})
	if err != nil {
		return out, err
	}
	out.Code, out.Text = operate.CodeNothing, whichJobs(o.Job)+" not paused"
	if out.Was != nil {
		out.Code, out.Text = operate.CodeDone, whichJobs(o.Job)+" resumed"
	}
	if o.Job == "" {
		return out, nil
	}
	if s, err := views[0].state(ctx, o.Job); err == nil && s.Paused != nil {
		out.Still = PauseOf(s.Paused)
		out.Text += "; but all jobs are paused " + out.Still.Reason
	}
	return out, nil
}

func whichJobs(name string) string {
	if name == "" {
		return "all jobs are"
	}
	return fmt.Sprintf("job %q is", name)
}

// pauseChange pauses or resumes jobs, and returns the pause that existed before.
type pauseChange func(context.Context, *redisledger.Ledger) (*redisledger.JobPause, error)

// changePause changes the pause of a job, or the pause of all jobs in every election that has jobs.
func (l session) changePause(ctx context.Context, name string, do pauseChange) (operate.Outcome, []View, error) {
	views := l.views()
	if name != "" {
		v, err := l.under(name)
		if err != nil {
			return operate.Outcome{}, nil, err
		}
		views = []View{v}
	}
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	var out operate.Outcome
	var problems []error
	for _, v := range views {
		was, err := do(ctx, v.Ledger)
		if err != nil {
			problems = append(problems, err)
		}
		if was != nil {
			out.Was = PauseOf(was)
		}
	}
	return out, views, errors.Join(problems...)
}
