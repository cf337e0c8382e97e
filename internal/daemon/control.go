package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/daemon/tasks"
	"baton/internal/flush/source/staging"
	"baton/internal/redisconn"
	"baton/internal/redisledger"
	"baton/internal/redislock"
	"baton/internal/status"
)

// ErrNoLeader is returned where a leader is needed and nobody leads.
var ErrNoLeader = redislock.ErrNobodyLeads

// Remote looks at an election from outside, for one command.
type Remote struct {
	config   config.Config
	store    *redisconn.Store
	venue    *site.Venue
	election site.Election
	ledger   *redisledger.Ledger
	own      func(context.Context) (Snapshot, error) // of the node that asks; nil: it is none
}

// Dial prepares to look at the election that the configuration names. It needs no
// database, opens no job's source before it must, and connects when it is asked something.
func Dial(c config.Config) (*Remote, error) {
	store, err := site.OpenRedis(c)
	if err != nil {
		return nil, err
	}
	at, err := site.Open(c, store)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &Remote{config: c, store: store, venue: at, election: at.Election(), ledger: at.Ledger(store)}, nil
}

// views are the elections that the configuration's jobs run under, the node's own first.
func (r *Remote) views() []view {
	var views []view
	for _, key := range site.LockKeys(r.config) {
		views = append(views, r.view(key))
	}
	return views
}

// view is the election of a lock.
func (r *Remote) view(lockKey string) view {
	at := r.venue.At(lockKey)
	l := at.Ledger(r.store)
	return view{
		lockKey: lockKey, election: at.Election(), ledger: l, stages: staging.NewStages(r.store, l),
		poll: r.config.Election.PollInterval,
	}
}

// Close drops the connections.
func (r *Remote) Close() error { return errors.Join(r.venue.Close(), r.store.Close()) }

// Snapshot is the state of the election and its jobs now.
func (r *Remote) Snapshot(ctx context.Context) (Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	all, err := tasks.All(r.config, r.store)
	if err != nil {
		return Snapshot{}, err
	}
	views := r.views()
	for i := range views {
		views[i].tasks = tasks.Under(all, views[i].lockKey)
	}
	now := time.Now().UTC()
	s := status.Snapshot{LockKey: r.config.Election.LockKey, Now: now, Redis: status.Redis{Host: r.venue.Host(), OK: true}, Jobs: configuredJobs(all, now)}
	s, err = gather(ctx, s, views)
	return status.Bounded(s), err
}

// Leader is who holds the lock now; nil if nobody does, and then why nobody may
// take it, as far as there is a reason.
func (r *Remote) Leader(ctx context.Context) (leader *Leader, vacant string, err error) {
	p, err := r.picture(ctx)
	if err != nil {
		return nil, "", err
	}
	return leaderOf(p), vacancy(p), nil
}

// Events is the history of the election, the oldest of the last n first.
func (r *Remote) Events(ctx context.Context, n int) ([]Event, error) {
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	p, err := r.election.Picture(ctx, n)
	events := eventsOf(p)
	slices.Reverse(events)
	return events, err
}

// Handover is what a step-down came to.
type Handover struct {
	From  string `json:"from"` // "" when a foreign client held the lock
	To    string `json:"to"`   // "" when it was not waited for
	Epoch int64  `json:"epoch"`
	// TookMS is the time from the order to the next term, in milliseconds.
	TookMS int64 `json:"took_ms"`
}

// StepDown asks the leader to step down and waits, at most wait, until another
// term begins; wait zero does not. ErrNoLeader if nobody leads. If another node than
// the one that was asked for leads in the end, it answers both that and an error.
func (r *Remote) StepDown(ctx context.Context, to, reason string, wait time.Duration) (Handover, error) {
	before, err := r.picture(ctx)
	if err != nil {
		return Handover{}, err
	}
	if err := successor(before, to, silentAfter(r.config.Election.PollInterval)); err != nil {
		return Handover{}, err
	}
	asked := time.Now()
	ask, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	owner, from, err := r.election.StepDown(ask, to, reason)
	if err != nil {
		return Handover{}, err
	}
	if from == "" {
		return Handover{}, fmt.Errorf("lock %q is held by a client that is not baton (owner %s): it does not take orders", r.config.Election.LockKey, owner)
	}
	h := Handover{From: from}
	if wait <= 0 {
		return h, nil
	}
	p, over, err := until(ctx, r.election, asked.Add(wait), func(p redislock.Picture) bool { return p.Owner != "" && p.Owner != owner })
	if err != nil {
		return h, err
	}
	switch {
	case !over && p.Owner == "":
		return h, fmt.Errorf("%s has stepped down, and after %v nobody has taken over: is another node there that may lead? If not, %s leads again soon; see baton status", from, wait, from)
	case !over:
		return h, fmt.Errorf("%s was asked to step down, and after %v no other term has begun: it may be finishing its jobs; see baton status", from, wait)
	}
	h.To, h.Epoch, h.TookMS = p.Leader, p.Epoch, time.Since(asked).Milliseconds()
	if to != "" && h.To != to {
		return h, fmt.Errorf("%s leads after %s, and not %s: that one did not take the lock while it was kept for it; see baton explain %s", h.To, h.From, to, to)
	}
	return h, nil
}

func (r *Remote) picture(ctx context.Context) (redislock.Picture, error) {
	return look(ctx, r.election)
}

func look(ctx context.Context, e site.Election) (redislock.Picture, error) {
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	return e.Picture(ctx, 1)
}

// successor refuses a successor that cannot take over.
func successor(p redislock.Picture, to string, silent time.Duration) error {
	if to == "" {
		return nil
	}
	if to == p.Leader {
		return fmt.Errorf("node %q leads already", to)
	}
	for _, n := range p.Nodes {
		if n.ID != to || p.Now.Sub(n.Seen()) > silent {
			continue
		}
		if n.Observer {
			return fmt.Errorf("node %q never leads: node.candidate is false in its configuration", to)
		}
		if aside := asideOf(p, to); aside != "" {
			return fmt.Errorf("node %q would not take the lock: it stands aside %s", to, aside)
		}
		return nil
	}
	return fmt.Errorf("node %q is not among the live nodes: see baton status", to)
}
