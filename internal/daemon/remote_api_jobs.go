package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"baton/internal/job"
	"baton/internal/status"
)

// Job is how one job stands.
func (c *Client) Job(ctx context.Context, name string) (Job, error) {
	j, err := get[Job](ctx, c, nil, "jobs", name)
	if errors.Is(err, ErrNoJob) {
		var have []string
		for _, j := range c.known().Jobs {
			have = append(have, j.Name)
		}
		return j, noJob(name, have)
	}
	return j, err
}

// JobHistory are the last n entries of a job's history, the newest first.
func (c *Client) JobHistory(ctx context.Context, name string, n int) ([]JobEntry, error) {
	var all []JobEntry
	err := c.history(ctx, name, n, func(e status.Entry) bool {
		all = append(all, JobEntry{At: e.At, Run: e.Run, Missed: e.Missed})
		return len(all) < n
	})
	return all, err
}

// JobRuns are the last n finished runs of a job, the newest first.
func (c *Client) JobRuns(ctx context.Context, name string, n int) ([]Execution, error) {
	var runs []Execution
	err := c.history(ctx, name, n, func(e status.Entry) bool {
		if e.Run != nil && len(runs) < n {
			runs = append(runs, *e.Run)
		}
		return len(runs) < n
	})
	return runs, err
}

// history goes back in a job's history until told not to.
func (c *Client) history(ctx context.Context, name string, n int, next func(status.Entry) bool) error {
	const page = 1000
	for before := ""; ; {
		query := url.Values{"n": {strconv.Itoa(min(max(n, 1), page))}}
		if before != "" {
			query.Set("before", before)
		}
		reply, err := get[struct {
			Entries []status.Entry
			Before  string
		}](ctx, c, query, "jobs", name, "history")
		if err != nil {
			return err
		}
		for _, e := range reply.Entries {
			if !next(e) {
				return nil
			}
		}
		if before = reply.Before; before == "" {
			return nil
		}
	}
}

// Next tells when a job is due after a time.
func (c *Client) Next(ctx context.Context, name string, from time.Time, n int) (Coming, error) {
	coming, err := get[Coming](ctx, c, url.Values{"n": {strconv.Itoa(n)}, "from": {from.Format(time.RFC3339)}}, "jobs", name, "next")
	zone, unknown := time.LoadLocation(coming.TimeZone)
	if err != nil || unknown != nil {
		return coming, err
	}
	for _, slots := range [][]ComingSlot{coming.Next, coming.Shifts} {
		for i := range slots {
			slots[i].Slot, slots[i].Start = slots[i].Slot.In(zone), slots[i].Start.In(zone)
		}
	}
	return coming, nil
}

// RunJob has the leader run a job now.
func (c *Client) RunJob(ctx context.Context, name, by string, force bool) (JobRun, error) {
	out, err := c.order(ctx, signed(by, map[string]any{"force": force}), "jobs", name, "run")
	if err != nil || out.Run == nil {
		return JobRun{}, err
	}
	return JobRun{Job: name, Run: *out.Run, Queued: out.Queued}, nil
}

// CancelJob has the leader end a run of a job, or all of them.
func (c *Client) CancelJob(ctx context.Context, name, runID, by string) (JobCancelled, error) {
	out, err := c.order(ctx, signed(by, map[string]any{"run_id": runID}), "jobs", name, "cancel")
	return JobCancelled{Job: name, Runs: out.Runs, Retry: out.Retry}, err
}

// jobsPath is of one job, or with "" of all.
func jobsPath(name, what string) []string {
	if name == "" {
		return []string{"jobs", what}
	}
	return []string{"jobs", name, what}
}

// PauseJob has nobody run a job, or with "" any job.
func (c *Client) PauseJob(ctx context.Context, name, reason string, until time.Time) (JobPause, error) {
	body := map[string]any{}
	if !until.IsZero() {
		body["until"] = until
	}
	out, err := c.order(ctx, signed(reason, body), jobsPath(name, "pause")...)
	return JobPause{Job: name, Reason: reason, Until: until, Was: out.Was}, err
}

// ResumeJob ends the pause of a job, or with "" the one of all.
func (c *Client) ResumeJob(ctx context.Context, name, by string) (JobPause, error) {
	out, err := c.order(ctx, signed(by, nil), jobsPath(name, "resume")...)
	return JobPause{Job: name, Was: out.Was, Still: out.Still}, err
}

// Vacant is why nobody leads the election that a job runs under.
func (c *Client) Vacant(ctx context.Context, name string) (lockKey, why string) {
	s, err := c.Snapshot(ctx)
	if err != nil {
		return s.LockKey, ""
	}
	for _, j := range s.Jobs {
		for _, l := range s.Locks {
			if j.Name == name && j.Lock == l.Key {
				return l.Key, l.Vacancy
			}
		}
	}
	return s.LockKey, s.Vacancy
}

// IsCommand reports whether a job runs a program.
func (c *Client) IsCommand(name string) bool {
	for _, j := range c.known().Jobs {
		if j.Name == name {
			return j.Command
		}
	}
	return false
}

// Zone is the time zone that a job is scheduled in.
func (c *Client) Zone(name string) *time.Location {
	for _, j := range c.known().Jobs {
		if at, err := time.LoadLocation(j.TimeZone); err == nil && j.Name == name {
			return at
		}
	}
	return time.UTC
}

// Configured reports whether the node's configuration has a job of that name.
func (c *Client) Configured(name string) bool {
	for _, j := range c.known().Jobs {
		if j.Name == name {
			return true
		}
	}
	return false
}

// WatchRun calls show with a run as it stands until it has ended.
func (c *Client) WatchRun(ctx context.Context, name, id string, show func(JobRun)) (JobRun, error) {
	var lost time.Time
	const often = 3 // a run that was queued may begin between two looks
	for unknown := 0; ; {
		run, err := get[JobRun](ctx, c, nil, "jobs", name, "runs", id)
		var p *problem
		switch {
		case ctx.Err() != nil:
			return JobRun{}, ctx.Err()
		case errors.Is(err, ErrNoRun) && unknown < often:
			unknown++
		case errors.Is(err, ErrNoRun):
			return JobRun{}, fmt.Errorf("run %s of job %q: %w: the history does not know it; redis may have lost its data", id, name, ErrRunLost)
		case errors.As(err, &p) && p.final():
			return JobRun{}, err
		case err != nil: // it will be back
		case !run.Queued && run.Run.State != string(job.StateRunning):
			return run, nil
		default:
			unknown = 0
			show(run)
			switch {
			case !run.Leaderless:
				lost = time.Time{}
			case lost.IsZero():
				lost = time.Now()
			case time.Since(lost) > lostAfter:
				return JobRun{}, fmt.Errorf("run %s of job %q: %w: %s ran it and no longer leads; what it had committed is in the database, and the next run does the rest", id, name, ErrRunLost, run.Run.NodeID)
			}
		}
		_ = rest(ctx, watchEvery)
	}
}

// final reports whether asking again is of no use.
func (p *problem) final() bool { return !p.away }

// ShowLogs writes what a command has printed, and returns how the run stands then.
func (c *Client) ShowLogs(ctx context.Context, o JobLogs, w io.Writer) (JobRun, error) {
	run, err := c.whichRun(ctx, o)
	if err != nil {
		return run, err
	}
	l := clientLogs{c: c, o: o, id: run.Run.ID, w: w}
	if err := l.more(ctx); err != nil || l.broken != nil {
		return run, errors.Join(err, l.broken)
	}
	if o.Follow && run.Run.State == string(job.StateRunning) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		run, err = c.WatchRun(ctx, o.Job, run.Run.ID, func(JobRun) {
			_ = l.more(ctx) // the node will be back
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
	if !l.shown {
		o.Note(fmt.Sprintf("run %s has printed nothing", run.Run.ID))
	}
	return run, nil
}

// whichRun finds the run whose output is wanted.
func (c *Client) whichRun(ctx context.Context, o JobLogs) (JobRun, error) {
	j, err := c.Job(ctx, o.Job)
	switch {
	case err != nil:
		return JobRun{}, err
	case !j.Command:
		return JobRun{}, fmt.Errorf("job %q is a flush: it %w; baton job show %s tells of its runs", o.Job, ErrNoOutput, o.Job)
	case o.RunID != "":
		run, err := get[JobRun](ctx, c, nil, "jobs", o.Job, "runs", o.RunID)
		if errors.Is(err, ErrNoRun) {
			return run, noRun(o.Job, o.RunID)
		}
		return run, err
	case j.Running != nil:
		return JobRun{Job: o.Job, Run: *j.Running}, nil
	case j.LastRun == nil:
		return JobRun{}, fmt.Errorf("job %q has not run yet", o.Job)
	}
	return JobRun{Job: o.Job, Run: *j.LastRun}, nil
}

// clientLogs is the output of one run, as far as it was shown.
type clientLogs struct {
	c      *Client
	o      JobLogs
	id     string
	w      io.Writer
	at     int64
	shown  bool
	broken error // of the writer: nobody reads on
}

// more shows what is new.
func (l *clientLogs) more(ctx context.Context) error {
	out, err := get[struct {
		Text         string
		Offset, Next int64
	}](ctx, l.c, url.Values{"from": {strconv.FormatInt(l.at, 10)}}, "jobs", l.o.Job, "runs", l.id, "output")
	if err != nil || out.Text == "" {
		return err
	}
	text := []byte(out.Text)
	if !l.shown && l.o.Tail >= 0 {
		text = lastLines(text, l.o.Tail)
	} else if missing := out.Offset - l.at; missing > 0 {
		l.o.Note(fmt.Sprintf("%d bytes are left out: of each run only the end is kept", missing))
	}
	l.shown, l.at = true, out.Next
	_, l.broken = l.w.Write(text)
	return nil
}
