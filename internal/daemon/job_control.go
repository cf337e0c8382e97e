package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/operate"
	"baton/internal/redisledger"
	"baton/internal/redislock"
	"baton/internal/status"
)

// Errors of commands about jobs, matched by errors.Is.
var (
	// ErrNoJob: the configuration has no such job.
	ErrNoJob = errors.New("no such job")
	// ErrNoRun: neither what goes on nor the history has such a run.
	ErrNoRun = errors.New("no such run")
	// ErrRunLost: nobody can tell how a run ended.
	ErrRunLost = errors.New("nobody can tell how the run ended")
)

const (
	// askFor is how long an order is good: a leader that comes later shall not do what
	// nobody expects any more.
	askFor = 15 * time.Second
	// watchEvery is how often a watched run is looked at.
	watchEvery = 200 * time.Millisecond
	// lostAfter is how long a run may have no leader before it is given up for lost: the
	// leader of a term that has ended tells how its runs ended, if it can.
	lostAfter = 5 * time.Second
	// latest is how many entries of a history one is looked for in that was there a moment
	// ago, again and again; searched is all that a history may keep, for one look.
	latest, searched = 100, 10_000
)

// JobRun is a run as those see it who have asked for it, or watch it.
type JobRun = operate.JobRun

// under is the election that a job runs under, and refuses a job that the configuration
// does not have.
func (r *Remote) under(name string) (view, error) {
	var have []string
	for _, j := range r.config.Jobs {
		if j.Name == name {
			return r.view(j.Lock), nil
		}
		have = append(have, j.Name)
	}
	return view{}, noJob(name, have)
}

// noJob says which jobs there are instead.
func noJob(name string, have []string) error {
	if len(have) == 0 {
		return fmt.Errorf("%w: %q: the configuration has no jobs; is --config right?", ErrNoJob, name)
	}
	return fmt.Errorf("%w: %q: the configuration has %s", ErrNoJob, name, someOf(have))
}

// someOf names as many as one likes to read.
func someOf(names []string) string {
	const most = 30
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more: baton job list", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// known refuses a job that the configuration does not have.
func (r *Remote) known(name string) error {
	_, err := r.under(name)
	return err
}

// picture is who leads.
func (v view) picture(ctx context.Context) (redislock.Picture, error) {
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	return v.election.Picture(ctx, 1)
}

// leads is who leads, and takes orders; [ErrNoLeader] if nobody does.
func (v view) leads(ctx context.Context) (nodeID string, err error) {
	p, err := v.picture(ctx)
	switch {
	case err != nil:
		return "", err
	case p.Owner == "":
		return "", ErrNoLeader
	case p.Leader == "":
		return "", fmt.Errorf("lock %q is held by a client that is not baton (owner %s): it runs no jobs", v.lockKey, p.Owner)
	}
	return p.Leader, nil
}

// state is how one job stands.
func (v view) state(ctx context.Context, name string) (redisledger.JobState, error) {
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	states, err := v.ledger.Jobs(ctx, []string{name})
	if err != nil {
		return redisledger.JobState{}, err
	}
	return states[0], nil
}

// Vacant is why nobody leads the election that a job runs under, as far as there is a
// reason, and the key of its lock.
func (r *Remote) Vacant(ctx context.Context, name string) (lockKey, why string) {
	v, err := r.under(name)
	if err != nil {
		return r.config.Election.LockKey, ""
	}
	if p, err := v.picture(ctx); err == nil {
		why = vacancy(p)
	}
	return v.lockKey, why
}

// IsCommand reports whether a job runs a program.
func (r *Remote) IsCommand(name string) bool {
	return slices.ContainsFunc(r.config.Jobs, func(j config.Job) bool { return j.Name == name && j.IsCommand() })
}

// Zone is the time zone that a job is scheduled in, with "" that of jobs without one.
func (r *Remote) Zone(name string) *time.Location {
	zone := r.config.Defaults.TimeZone
	for _, j := range r.config.Jobs {
		if j.Name == name {
			zone = j.TimeZone
		}
	}
	if at, err := time.LoadLocation(zone); err == nil {
		return at
	}
	return time.UTC
}

// Job is how one job stands.
func (r *Remote) Job(ctx context.Context, name string) (status.Job, error) {
	if _, err := r.under(name); err != nil {
		return status.Job{}, err
	}
	s, err := r.Snapshot(ctx)
	if err != nil {
		return status.Job{}, err
	}
	i := slices.IndexFunc(s.Jobs, func(j status.Job) bool { return j.Name == name })
	return s.Jobs[i], nil
}

// JobRuns are the last n finished runs of a job, the newest first.
func (r *Remote) JobRuns(ctx context.Context, name string, n int) ([]status.Run, error) {
	v, err := r.under(name)
	if err != nil {
		return nil, err
	}
	return v.runs(ctx, name, n)
}

func (v view) runs(ctx context.Context, name string, n int) ([]status.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	records, err := v.ledger.Runs(ctx, name, n)
	runs := make([]status.Run, len(records))
	for i := range records {
		runs[i] = *runOf(&records[i])
	}
	return runs, err
}

// JobEntry is an entry of a job's history: a finished run, or slots that were missed.
type JobEntry struct {
	At     time.Time    `json:"at"`
	Run    *status.Run  `json:"run,omitempty"`
	Missed *MissedSlots `json:"missed,omitempty"`
}

// MissedSlots are slots, one after the other, that were not run.
type MissedSlots = operate.Missed

// JobHistory are the last n entries of a job's history, the newest first.
func (r *Remote) JobHistory(ctx context.Context, name string, n int) ([]JobEntry, error) {
	v, err := r.under(name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	history, err := v.ledger.History(ctx, name, n)
	entries := make([]JobEntry, len(history))
	for i := range history {
		entries[i] = jobEntryOf(&history[i])
	}
	return entries, err
}

func jobEntryOf(e *redisledger.HistoryEntry) JobEntry {
	if m := e.Missed; m != nil {
		return JobEntry{At: e.At, Missed: &MissedSlots{
			Reason: string(m.Reason), Count: m.Count, First: m.First, Last: m.Slot, NodeID: e.Term.NodeID, Epoch: e.Term.Epoch, Error: e.Error,
		}}
	}
	return JobEntry{At: e.At, Run: runOf(&e.Record)}
}
