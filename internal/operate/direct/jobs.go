package direct

import (
	"context"
	"fmt"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/daemon/tasks"
	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/redisledger"
	"baton/internal/redislock"
)

const (
	// AskFor is how long an order is valid. After that time no leader may carry out the order, because its sender has given up.
	AskFor = 15 * time.Second
	// slowest is the longest interval between two reads while a command waits for the effect of an order. The first interval is [glance].
	slowest = 200 * time.Millisecond
	// The constant latest is the number of history entries that are read repeatedly, to find an entry that was just made. The constant
	// searched is the maximum number of entries in a history, and is used for a single search.
	latest, searched = 100, 10_000
)

// The method under returns the election that a job runs under. It returns an error if the configuration does not contain the job.
func (l session) under(name string) (View, error) {
	j, err := jobNamed(l.Config, name)
	if err != nil {
		return View{}, err
	}
	return l.view(j.Lock), nil
}

// jobNamed returns the job with a name from the configuration.
func jobNamed(c config.Config, name string) (config.Job, error) {
	var have []string
	for _, j := range c.Jobs {
		if j.Name == name {
			return j, nil
		}
		have = append(have, j.Name)
	}
	return config.Job{}, operate.NoJob(name, have)
}

// electionState reads the state of the election.
func (v View) electionState(ctx context.Context) (redislock.ElectionState, error) {
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	return v.Election.State(ctx, 1)
}

// leads returns the leader if the leader takes orders. It returns [operate.ErrNoLeader] if no node leads.
func (v View) leads(ctx context.Context) (nodeID string, err error) {
	p, err := v.electionState(ctx)
	switch {
	case err != nil:
		return "", err
	case p.Owner == "":
		return "", operate.ErrNoLeader
	case p.Leader == "":
		return "", fmt.Errorf("lock %q is held by a client that is not baton (owner %s): it runs no jobs", v.LockKey, p.Owner)
	}
	return p.Leader, nil
}

// state returns the state of one job.
func (v View) state(ctx context.Context, name string) (redisledger.JobState, error) {
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	states, err := v.Ledger.Jobs(ctx, []string{name})
	if err != nil {
		return redisledger.JobState{}, err
	}
	return states[0], nil
}

// zone returns the time zone of a job's schedule. The name "" means the zone of jobs without their own zone.
func (l session) zone(name string) *time.Location {
	zone := l.Config.Defaults.TimeZone
	for _, j := range l.Config.Jobs {
		if j.Name == name {
			zone = j.TimeZone
		}
	}
	if at, err := time.LoadLocation(zone); err == nil {
		return at
	}
	return time.UTC
}

// Zone returns the time zone of a job's schedule.
func (s *Site) Zone(_ context.Context, name string) *time.Location { return s.session().zone(name) }

// Configured returns the jobs of the configuration.
func (s *Site) Configured(context.Context) []diagnose.Job {
	var all []tasks.Task
	for _, j := range s.node.Access().Config.Jobs {
		if t, err := tasks.Describe(j); err == nil {
			all = append(all, t)
		}
	}
	return ConfiguredJobs(all, time.Now().UTC())
}

// Definition returns a job's resolved configuration.
func (s *Site) Definition(ctx context.Context, job string) (string, error) {
	for _, j := range s.Configured(ctx) {
		if j.Name == job {
			return j.Definition, nil
		}
	}
	return "", nil
}

// History returns entries of a job's history.
func (s *Site) History(ctx context.Context, name, before string, n int) ([]operate.Entry, error) {
	return asking(ctx, s, func(l session) ([]operate.Entry, error) {
		v, err := l.under(name)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
		defer cancel()
		history, err := v.Ledger.HistoryBefore(ctx, name, before, n)
		entries := make([]operate.Entry, len(history))
		for i := range history {
			entries[i] = entryOf(&history[i])
		}
		return entries, err
	})
}

func entryOf(e *redisledger.HistoryEntry) operate.Entry {
	if m := e.Missed; m != nil {
		return operate.Entry{ID: e.Entry, At: e.At, Missed: &operate.Missed{
			Reason: string(m.Reason), Count: m.Count, First: m.First, Last: m.Slot,
			NodeID: e.Term.NodeID, Epoch: e.Term.Epoch, Error: e.Error,
		}}
	}
	return operate.Entry{ID: e.Entry, At: e.At, Run: runOf(&e.Record)}
}

// Next returns a job's next slots.
func (s *Site) Next(_ context.Context, name string, from time.Time, n int) (operate.Coming, error) {
	c, err := Next(s.node.Access().Config, name, from, n)
	return c, coded(err)
}

// Samples returns samples, which say how far the tables of the flushes were behind Redis.
func (s *Site) Samples(ctx context.Context, since time.Time) ([]operate.Sample, error) {
	free, err := enter(ctx, s.redis)
	if err != nil {
		return nil, err
	}
	defer free()
	return s.node.Samples(ctx, since)
}

// Recent returns the latest runs of every job.
func (s *Site) Recent(ctx context.Context) (map[string][]operate.Brief, error) {
	free, err := enter(ctx, s.redis)
	if err != nil {
		return nil, err
	}
	defer free()
	return s.node.Recent(ctx)
}
