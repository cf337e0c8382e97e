package operate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"baton/internal/diagnose"
)

// KeptOutput is how many bytes of a run's output are kept.
const KeptOutput = 256 << 10

// JobLogs says whose output to show.
type JobLogs struct {
	Job   string
	RunID string // "": the run that goes on, or else the last one
	// Follow the output until the run has ended.
	Follow bool
	// Tail is how many lines to begin with; less than 0: all that is kept.
	Tail int
	// Note gets a text for people about missing output.
	Note func(text string)
}

// ShowLogs writes the output of a command's run, whichever host ran it, and returns the run's present state.
func ShowLogs(ctx context.Context, runs Operator, o JobLogs, w io.Writer) (JobRun, error) {
	run, err := whichRun(ctx, runs, o)
	if err != nil {
		return JobRun{}, err
	}
	l := logs{runs: runs, o: o, id: run.Run.ID, w: w}
	// whichRun read the state before the output, so the output of a run that had ended is complete.
	if err := l.more(ctx); err != nil || l.broken != nil {
		return run, errors.Join(err, l.broken)
	}
	if o.Follow && (run.Queued || run.Run.State == stateRunning) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		run, err = WatchRun(ctx, runs, o.Job, run.Run.ID, func(JobRun) {
			_ = l.more(ctx) // it will be back
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

// IsCommand reports whether a job runs a program.
func IsCommand(jobs []diagnose.Job, name string) bool {
	return slices.ContainsFunc(jobs, func(j diagnose.Job) bool { return j.Name == name && j.Command })
}

// whichRun finds the run whose output is wanted.
func whichRun(ctx context.Context, runs Operator, o JobLogs) (JobRun, error) {
	run, err := runs.Run(ctx, o.Job, o.RunID)
	if errors.Is(err, ErrNoJob) || errors.Is(err, ErrNoServer) || errors.Is(err, ErrNotAllowed) {
		return run, err // the job is unknown
	}
	if !IsCommand(runs.Configured(ctx), o.Job) {
		return JobRun{}, NoOutput(o.Job)
	}
	return run, err
}

// NoOutput says that a job prints nothing. It is an [ErrNoOutput].
func NoOutput(job string) error {
	return fmt.Errorf("job %q is a flush: it %w; baton job show %s tells of its runs", job, ErrNoOutput, job)
}

// logs is the output of one run, as far as it was shown.
type logs struct {
	runs   Operator
	o      JobLogs
	id     string
	w      io.Writer
	at     int64 // the output before it was shown, or is gone
	shown  bool
	broken error // of the writer: it is closed
}

// more shows the new output.
func (l *logs) more(ctx context.Context) error {
	for {
		o, err := l.runs.Output(ctx, l.o.Job, l.id, l.at)
		if err != nil || o.Text == "" {
			return err
		}
		text := []byte(o.Text)
		if !l.shown && l.o.Tail >= 0 {
			text = lastLines(text, l.o.Tail)
		} else if missing := o.Offset - l.at; missing > 0 {
			l.o.Note(fmt.Sprintf("%d bytes are left out: of each run the last %d KiB are kept", missing, KeptOutput>>10))
		}
		l.shown, l.at = true, o.Next
		if _, l.broken = l.w.Write(text); l.broken != nil {
			return nil //nolint:nilerr // l.broken has it
		}
	}
}

// silent says why there was no output to show, or shows the end that the history keeps.
func (l *logs) silent(run diagnose.Run) error {
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
	case run.State == StateQueued:
		l.o.Note(fmt.Sprintf("run %s waits for another one to end", run.ID))
	case run.State == stateRunning:
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
