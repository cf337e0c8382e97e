package direct

import (
	"context"
	"fmt"
	"time"

	"baton/internal/daemon/site"
	"baton/internal/daemon/tasks"
	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/redisledger"
	"baton/internal/redislock"
)

const (
	// AskFor is how long an order is valid: a later leader must not carry out an order that its sender has given up.
	AskFor = 15 * time.Second
	// slowest is the longest interval between two looks for the effect of an order; the first interval is [glance].
	slowest = 200 * time.Millisecond
	// latest is how many entries of a history are searched, again and again, for an entry that was just made; searched is all that a
	// history may keep, for one look.
	latest, searched = 100, 10_000
)

// under is the election that a job runs under, and refuses a job that the configuration
// does not have.
func (l session) under(name string) (View, error) {
	var have []string
	for _, j := range l.Config.Jobs {
		if j.Name == name {
			return l.view(j.Lock), nil
		}
		have = append(have, j.Name)
	}
	return View{}, operate.NoJob(name, have)
}

// picture reads the state of the election.
func (v View) picture(ctx context.Context) (redislock.Picture, error) {
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	return v.Election.Picture(ctx, 1)
}

// leads returns the leader if it takes orders; [operate.ErrNoLeader] if no node does.
func (v View) leads(ctx context.Context) (nodeID string, err error) {
	p, err := v.picture(ctx)
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

// state is how one job stands.
func (v View) state(ctx context.Context, name string) (redisledger.JobState, error) {
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	states, err := v.Ledger.Jobs(ctx, []string{name})
	if err != nil {
		return redisledger.JobState{}, err
	}
	return states[0], nil
}

// zone is the time zone that a job is scheduled in, with "" that of jobs without one.
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

// Zone is the time zone that a job is scheduled in.
func (s *Site) Zone(_ context.Context, name string) *time.Location { return s.session().zone(name) }

// Configured are the jobs as they are configured.
func (s *Site) Configured(context.Context) []diagnose.Job {
	var all []tasks.Task
	for _, j := range s.node.Access().Config.Jobs {
		if t, err := tasks.Describe(j); err == nil {
			all = append(all, t)
		}
	}
	return ConfiguredJobs(all, time.Now().UTC())
}

// History has the entries of a job's history.
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

// Next reports when a job is due.
func (s *Site) Next(_ context.Context, name string, from time.Time, n int) (operate.Coming, error) {
	c, err := Next(s.node.Access().Config, name, from, n)
	return c, coded(err)
}

// Samples reports how far the flushes were behind.
func (s *Site) Samples(ctx context.Context, since time.Time) ([]operate.Sample, error) {
	free, err := enter(ctx, s.redis)
	if err != nil {
		return nil, err
	}
	defer free()
	return s.node.Samples(ctx, since)
}

// Recent reports the latest runs of every job.
func (s *Site) Recent(ctx context.Context) (map[string][]operate.Brief, error) {
	free, err := enter(ctx, s.redis)
	if err != nil {
		return nil, err
	}
	defer free()
	return s.node.Recent(ctx)
}
