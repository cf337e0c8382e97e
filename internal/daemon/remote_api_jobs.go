package daemon

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"time"

	"baton/internal/operate"
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
	err := c.history(ctx, name, n, func(e operate.Entry) bool {
		all = append(all, JobEntry{At: e.At, Run: e.Run, Missed: e.Missed})
		return len(all) < n
	})
	return all, err
}

// JobRuns are the last n finished runs of a job, the newest first.
func (c *Client) JobRuns(ctx context.Context, name string, n int) ([]Execution, error) {
	var runs []Execution
	err := c.history(ctx, name, n, func(e operate.Entry) bool {
		if e.Run != nil && len(runs) < n {
			runs = append(runs, *e.Run)
		}
		return len(runs) < n
	})
	return runs, err
}

// history goes back in a job's history until told not to.
func (c *Client) history(ctx context.Context, name string, n int, next func(operate.Entry) bool) error {
	const page = 1000
	for before := ""; ; {
		query := url.Values{"n": {strconv.Itoa(min(max(n, 1), page))}}
		if before != "" {
			query.Set("before", before)
		}
		reply, err := get[struct {
			Entries []operate.Entry
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

// Run is how a run stands. Without an ID it is the one that goes on, or else the last one.
func (c *Client) Run(ctx context.Context, name, id string) (JobRun, error) {
	if id == "" {
		j, err := c.Job(ctx, name)
		if err != nil {
			return JobRun{}, err
		}
		if id, err = lastRunOf(name, j); err != nil {
			return JobRun{}, err
		}
	}
	return get[JobRun](ctx, c, nil, "jobs", name, "runs", id)
}

// Output is what a run has printed from an offset on, or from where it is still kept.
func (c *Client) Output(ctx context.Context, name, id string, from int64) (Output, error) {
	return get[Output](ctx, c, url.Values{"from": {strconv.FormatInt(from, 10)}}, "jobs", name, "runs", id, "output")
}
