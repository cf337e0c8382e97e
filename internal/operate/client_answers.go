package operate

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"baton/internal/diagnose"
)

// Snapshot returns the node's view of the election and its jobs.
func (c *Client) Snapshot(ctx context.Context) (diagnose.Snapshot, error) {
	s, err := get[diagnose.Snapshot](ctx, c, nil, "status")
	if err != nil {
		return s, err
	}
	c.mu.Lock()
	c.last = &s
	c.mu.Unlock()
	if s.Error != "" {
		return s, fmt.Errorf("%s does not know the status: %s", c.server, s.Error)
	}
	return s, nil
}

// Election returns the node's view of the election.
func (c *Client) Election(ctx context.Context) (diagnose.Snapshot, error) {
	s, err := c.Snapshot(ctx)
	s.Jobs = nil
	return s, err
}

// Held returns the held locks of the node's configuration.
func (c *Client) Held(ctx context.Context) ([]diagnose.Lock, error) {
	s, err := c.Snapshot(ctx)
	return HeldIn(s), err
}

// HeldIn returns the held locks of a Snapshot, by their keys.
func HeldIn(s diagnose.Snapshot) []diagnose.Lock {
	all := append([]diagnose.Lock{{Key: s.LockKey, Leader: s.Leader}}, s.Locks...)
	all = slices.DeleteFunc(all, func(l diagnose.Lock) bool { return l.Leader == nil })
	slices.SortFunc(all, func(a, b diagnose.Lock) int { return strings.Compare(a.Key, b.Key) })
	return all
}

// lastSeen returns the last Snapshot that the client has read, or reads one. It is for data that rarely changes, because the Snapshot may
// be old.
func (c *Client) lastSeen(ctx context.Context) diagnose.Snapshot {
	c.mu.Lock()
	last := c.last
	c.mu.Unlock()
	if last != nil {
		return *last
	}
	s, _ := c.Snapshot(context.WithoutCancel(ctx)) // get limits the wait; after a failure the next call asks again
	return s
}

// Configured returns the jobs of the node's configuration.
func (c *Client) Configured(ctx context.Context) []diagnose.Job { return c.lastSeen(ctx).Jobs }

// Definition returns a job's configuration as the node has resolved it.
func (c *Client) Definition(ctx context.Context, job string) (string, error) {
	j, err := get[diagnose.Job](ctx, c, nil, "jobs", job)
	return j.Definition, err
}

// Zone returns the time zone of a job's schedule.
func (c *Client) Zone(ctx context.Context, job string) *time.Location {
	for _, j := range c.Configured(ctx) {
		if at, err := time.LoadLocation(j.TimeZone); err == nil && j.Name == job {
			return at
		}
	}
	return time.UTC
}

// Events returns the history of the election, the newest event first.
func (c *Client) Events(ctx context.Context, n int) ([]diagnose.Event, error) {
	reply, err := get[struct{ Events []diagnose.Event }](ctx, c, url.Values{"n": {strconv.Itoa(min(max(n, 1), 1000))}}, "events")
	return reply.Events, err
}

// Explain reports why a node leads or does not lead. The node "" means the node that answers.
func (c *Client) Explain(ctx context.Context, node string) (Explanation, error) {
	if node == "" {
		node = c.lastSeen(ctx).NodeID
	}
	x, err := get[Explanation](ctx, c, nil, "explain", node)
	if err == nil && len(x.Reasons) > 0 {
		return x, nil
	}
	why := Why{Code: WhyRedis, What: fmt.Sprintf("no reason is known: %v", err), Do: "ask another node, or run the command on " +
		"the node's host"}
	return Explanation{NodeID: node, Reasons: []Why{why}}, nil
}

// History returns entries of a job's history, the newest entry first. It asks the node repeatedly if one answer does not contain enough
// entries.
func (c *Client) History(ctx context.Context, job, before string, n int) (all []Entry, err error) {
	const page = 1000
	for {
		query := url.Values{"n": {strconv.Itoa(min(max(n-len(all), 1), page))}}
		if before != "" {
			query.Set("before", before)
		}
		reply, err := get[struct {
			Entries []Entry
			Before  string
		}](ctx, c, query, "jobs", job, "history")
		if err != nil {
			return all, err
		}
		all = append(all, reply.Entries...)
		if before = reply.Before; before == "" || len(all) >= n {
			return all[:min(n, len(all))], nil
		}
	}
}

// Next returns a job's next n slots after the time from.
func (c *Client) Next(ctx context.Context, job string, from time.Time, n int) (Coming, error) {
	coming, err := get[Coming](ctx, c, url.Values{"n": {strconv.Itoa(n)}, "from": {from.Format(time.RFC3339)}}, "jobs", job, "next")
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

// Run returns the state of a run. Without an id it returns the run in progress, or else the last run.
func (c *Client) Run(ctx context.Context, job, id string) (JobRun, error) {
	if id == "" {
		j, err := JobOf(ctx, c, job)
		if err != nil {
			return JobRun{}, err
		}
		if id, err = LastRun(j); err != nil {
			return JobRun{}, err
		}
	}
	run, err := get[JobRun](ctx, c, nil, "jobs", job, "runs", id)
	if errors.Is(err, ErrNoJob) {
		return run, NoJob(job, names(c.Configured(ctx)))
	}
	return run, err
}

// Acceptance counts the rows that the job never wrote and that wait to be accepted as rows of the job.
func (c *Client) Acceptance(ctx context.Context, job string) (Acceptance, error) {
	a, err := get[Acceptance](ctx, c, nil, "jobs", job, "acceptance")
	if errors.Is(err, ErrNoJob) {
		return a, NoJob(job, names(c.Configured(ctx)))
	}
	return a, err
}

func names(jobs []diagnose.Job) []string {
	list := make([]string, len(jobs))
	for i, j := range jobs {
		list[i] = j.Name
	}
	return list
}

// Output returns a run's output from an offset on, or from the oldest kept byte if that byte is later.
func (c *Client) Output(ctx context.Context, job, id string, from int64) (Output, error) {
	return get[Output](ctx, c, url.Values{"from": {strconv.FormatInt(from, 10)}}, "jobs", job, "runs", id, "output")
}
