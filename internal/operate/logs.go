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

// KeptOutput is the maximum number of bytes of a run's output that are kept.
const KeptOutput = 256 << 10

// JobLogs selects the output to show.
type JobLogs struct {
	Job   string
	RunID string // "" means the run in progress, or else the last run
	// Follow means that the output is shown until the run has ended.
	Follow bool
	// Tail limits the output to that many lines at its end. A negative number means all kept lines.
	Tail int
	// Note is called with a text for people about missing output.
	Note func(text string)
}

// ShowLogs writes the output of a command's run, regardless of the host that ran it. It returns the current state of the run.
func ShowLogs(ctx context.Context, runs Operator, o JobLogs, w io.Writer) (JobRun, error) {
	run, err := whichRun(ctx, runs, o)
	if err != nil {
		return JobRun{}, err
	}
	l := logs{runs: runs, o: o, id: run.Run.ID, w: w}
	// whichRun read the state before the output is read. So if the state says that the run has ended, the output is complete.
	if err := l.more(ctx); err != nil || l.broken != nil {
		return run, errors.Join(err, l.broken)
	}
	if o.Follow && (run.Queued || run.Run.State == stateRunning) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		run, err = WatchRun(ctx, runs, o.Job, run.Run.ID, func(JobRun) {
			_ = l.more(ctx) // the server will answer again later
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

// whichRun finds the run whose output is to be shown.
func whichRun(ctx context.Context, runs Operator, o JobLogs) (JobRun, error) {
	run, err := runs.Run(ctx, o.Job, o.RunID)
	if errors.Is(err, ErrNoJob) || errors.Is(err, ErrNoServer) || errors.Is(err, ErrNotAllowed) {
		return run, err // there is no such job
	}
	if !IsCommand(runs.Configured(ctx), o.Job) {
		return JobRun{}, NoOutput(o.Job)
	}
	return run, err
}

// NoOutput returns an [ErrNoOutput] for a job that prints nothing.
func NoOutput(job string) error {
	return fmt.Errorf("job %q is a flush: it %w; baton job show %s shows its runs", job, ErrNoOutput, job)
}

// logs shows the output of one run.
type logs struct {
	runs   Operator
	o      JobLogs
	id     string
	w      io.Writer
	at     int64 // the output before this offset was shown, or is no longer kept
	shown  bool
	broken error // the error of the writer, which is closed
}

// more shows the output that is new since the last call.
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
			l.o.Note(fmt.Sprintf("%d bytes are missing: baton keeps only the last %d KiB of output of each run", missing, KeptOutput>>10))
		}
		l.shown, l.at = true, o.Next
		if _, l.broken = l.w.Write(text); l.broken != nil {
			return nil //nolint:nilerr // l.broken has it
		}
	}
}

// silent explains why there was no output to show, or shows the end of the output that the history contains.
func (l *logs) silent(run diagnose.Run) error {
	switch {
	case l.shown:
		return nil
	case run.Output != "":
		l.o.Note(fmt.Sprintf("baton has kept only the end of the output of run %s", run.ID))
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

// lastLines returns the last n lines of a text. The last line may be incomplete.
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
