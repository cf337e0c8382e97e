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

// Snapshot is the state of the election and its jobs, as the node knows it.
func (c *Client) Snapshot(ctx context.Context) (diagnose.Snapshot, error) {
	s, err := get[diagnose.Snapshot](ctx, c, nil, "status")
	if err != nil {
		return s, err
	}
	c.mu.Lock()
	c.last = &s
	c.mu.Unlock()
	if s.Error != "" {
		return s, fmt.Errorf("%s cannot tell: %s", c.server, s.Error)
	}
	return s, nil
}

// Election is the state of the election, as the node knows it.
func (c *Client) Election(ctx context.Context) (diagnose.Snapshot, error) {
	s, err := c.Snapshot(ctx)
	s.Jobs = nil
	return s, err
}

// Held are the locks of the node's configuration that a client holds.
func (c *Client) Held(ctx context.Context) ([]diagnose.Lock, error) {
	s, err := c.Snapshot(ctx)
	return HeldIn(s), err
}

// HeldIn are the locks of a Snapshot that a client holds, by their keys.
func HeldIn(s diagnose.Snapshot) []diagnose.Lock {
	all := append([]diagnose.Lock{{Key: s.LockKey, Leader: s.Leader}}, s.Locks...)
	all = slices.DeleteFunc(all, func(l diagnose.Lock) bool { return l.Leader == nil })
	slices.SortFunc(all, func(a, b diagnose.Lock) int { return strings.Compare(a.Key, b.Key) })
	return all
}

// lastSeen is a Snapshot for what nearly never changes.
func (c *Client) lastSeen(ctx context.Context) diagnose.Snapshot {
	c.mu.Lock()
	last := c.last
	c.mu.Unlock()
	if last != nil {
		return *last
	}
	s, _ := c.Snapshot(context.WithoutCancel(ctx)) // get bounds the wait; a failed answer is asked for again
	return s
}

// Configured are the jobs of the node's configuration.
func (c *Client) Configured(ctx context.Context) []diagnose.Job { return c.lastSeen(ctx).Jobs }

// Zone is the time zone that a job is scheduled in.
func (c *Client) Zone(ctx context.Context, job string) *time.Location {
	for _, j := range c.Configured(ctx) {
		if at, err := time.LoadLocation(j.TimeZone); err == nil && j.Name == job {
			return at
		}
	}
	return time.UTC
}

// Events is the history of the election, the newest first.
func (c *Client) Events(ctx context.Context, n int) ([]diagnose.Event, error) {
	reply, err := get[struct{ Events []diagnose.Event }](ctx, c, url.Values{"n": {strconv.Itoa(min(max(n, 1), 1000))}}, "events")
	return reply.Events, err
}

// Explain reports why a node leads or not; "" means the node that answers.
func (c *Client) Explain(ctx context.Context, node string) (Explanation, error) {
	if node == "" {
		node = c.lastSeen(ctx).NodeID
	}
	x, err := get[Explanation](ctx, c, nil, "explain", node)
	if err == nil && len(x.Reasons) > 0 {
		return x, nil
	}
	why := Why{Code: WhyRedis, What: fmt.Sprintf("nothing is known: %v", err), Do: "ask another node, or on its host"}
	return Explanation{NodeID: node, Reasons: []Why{why}}, nil
}

// History goes back in a job's history.
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

// Next reports when a job is due after a time.
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

// Run is how a run stands. Without an ID it is the one that goes on, or else the last one.
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

func names(jobs []diagnose.Job) []string {
	list := make([]string, len(jobs))
	for i, j := range jobs {
		list[i] = j.Name
	}
	return list
}

// Output is a run's output from an offset on, or from where it is still kept.
func (c *Client) Output(ctx context.Context, job, id string, from int64) (Output, error) {
	return get[Output](ctx, c, url.Values{"from": {strconv.FormatInt(from, 10)}}, "jobs", job, "runs", id, "output")
}
