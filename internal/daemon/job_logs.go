package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"baton/internal/daemon/site"
	"baton/internal/job"
	"baton/internal/redisledger"
	"baton/internal/status"
)

// ErrNoOutput says that a job of that kind prints nothing.
var ErrNoOutput = errors.New("prints nothing")

// JobLogs says whose output to show.
type JobLogs struct {
	Job   string
	RunID string // "": the run that goes on, or else the last one
	// Follow the output until the run has ended.
	Follow bool
	// Tail is how many lines to begin with; less than 0: all that is kept.
	Tail int
	// Note is told what is missing, for people.
	Note func(text string)
}

// ShowLogs writes what a command has printed, from whichever host, and returns how the
// run stands then.
func (r *Remote) ShowLogs(ctx context.Context, o JobLogs, w io.Writer) (JobRun, error) {
	v, err := r.under(o.Job)
	if err != nil {
		return JobRun{}, err
	}
	run, err := r.whichRun(ctx, v, o)
	if err != nil {
		return JobRun{}, err
	}
	l := logs{ledger: v.ledger, o: o, run: run.Run, w: w}
	// The state was asked for first: of a run that has ended this is all.
	if err := l.more(ctx); err != nil || l.broken != nil {
		return run, errors.Join(err, l.broken)
	}
	if o.Follow && run.Run.State == string(job.StateRunning) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		run, err = r.WatchRun(ctx, o.Job, run.Run.ID, func(JobRun) {
			_ = l.more(ctx) // redis will be back
			if l.broken != nil {
				cancel()
			}
		})
		if l.broken != nil || err != nil {
			return run, errors.Join(l.broken, err)
		}
		if err := l.more(ctx); err != nil || l.broken != nil {
			return run, errors.Join(err, l.broken)
		}
	}
	return run, l.silent(run.Run)
}

// whichRun finds the run whose output is wanted.
func (r *Remote) whichRun(ctx context.Context, v view, o JobLogs) (JobRun, error) {
	if !r.IsCommand(o.Job) {
		return JobRun{}, fmt.Errorf("job %q is a flush: it %w; baton job show %s tells of its runs", o.Job, ErrNoOutput, o.Job)
	}
	id := o.RunID
	if id == "" {
		s, err := v.state(ctx, o.Job)
		if err != nil {
			return JobRun{}, err
		}
		j := status.Job{}
		fillJob(&j, s)
		switch {
		case j.Running != nil:
			return JobRun{Job: o.Job, Run: *j.Running}, nil
		case j.LastRun == nil:
			return JobRun{}, fmt.Errorf("job %q has not run yet", o.Job)
		}
		id = j.LastRun.ID
	}
	run, _, err := v.findRun(ctx, o.Job, id, searched)
	switch {
	case err != nil:
		return JobRun{}, err
	case run == nil:
		return JobRun{}, noRun(o.Job, id)
	}
	return JobRun{Job: o.Job, Run: *run}, nil
}

// noRun says where runs are listed.
func noRun(name, id string) error {
	return &status.Coded{
		Code: "no_run", Kind: status.ErrNotFound, Err: fmt.Errorf("the history of job %q knows no run %s; baton job show %s lists the runs", name, id, name),
	}
}

// logs is the output of one run, as far as it was shown.
type logs struct {
	ledger *redisledger.Ledger
	o      JobLogs
	run    status.Run
	w      io.Writer
	at     int64 // what is before has been shown, or is gone
	shown  bool
	broken error // of the writer: nobody reads on
}

// more shows what is new.
func (l *logs) more(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	for {
		o, err := l.ledger.ReadOutput(ctx, l.o.Job, l.run.ID, l.at)
		if err != nil || len(o.Text) == 0 {
			return err
		}
		text := o.Text
		if !l.shown && l.o.Tail >= 0 {
			text = lastLines(text, l.o.Tail)
		} else if missing := o.Offset - l.at; missing > 0 {
			l.o.Note(fmt.Sprintf("%d bytes are left out: of each run the last %d KiB are kept", missing, redisledger.KeepOutput>>10))
		}
		l.shown, l.at = true, o.Offset+int64(len(o.Text))
		if _, l.broken = l.w.Write(text); l.broken != nil {
			return nil
		}
	}
}

// silent says why there was nothing to show, or shows what the history has.
func (l *logs) silent(run status.Run) error {
	switch {
	case l.shown:
		return nil
	case run.Output != "":
		l.o.Note(fmt.Sprintf("only the end is left of what run %s printed", run.ID))
		text := []byte(run.Output)
		if l.o.Tail >= 0 {
			text = lastLines(text, l.o.Tail)
		}
		_, err := l.w.Write(text)
		return err
	case run.State == string(job.StateRunning):
		l.o.Note(fmt.Sprintf("run %s has printed nothing yet, in %v", run.ID, time.Since(run.Started).Round(time.Second)))
	default:
		l.o.Note(fmt.Sprintf("run %s has printed nothing", run.ID))
	}
	return nil
}

// lastLines are the last n lines of a text, the last one may be unfinished.
func lastLines(text []byte, n int) []byte {
	at := len(text)
	for rest := bytes.TrimSuffix(text, []byte("\n")); n > 0; n-- {
		at = bytes.LastIndexByte(rest, '\n') + 1
		if at == 0 {
			break
		}
		rest = rest[:at-1]
	}
	return text[at:]
}
