package direct

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"baton/internal/daemon/site"
	"baton/internal/daemon/tasks"
	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/redisconn"
	"baton/internal/redislock"
	"baton/internal/text"
)

// Snapshot returns the current state of the election and its jobs.
func (s *Site) Snapshot(ctx context.Context) (diagnose.Snapshot, error) {
	return asking(ctx, s, func(l session) (diagnose.Snapshot, error) {
		all, err := tasks.All(l.Config, l.Stores)
		if err != nil {
			return diagnose.Snapshot{}, err
		}
		views := l.views()
		for i := range views {
			views[i].Tasks = tasks.Under(all, views[i].LockKey)
		}
		return l.snapshot(ctx, ConfiguredJobs(all, time.Now().UTC()), views)
	})
}

// Own returns the part of a Snapshot that comes from the configuration alone: the place of the lock, and the jobs.
func (s *Site) Own() diagnose.Snapshot {
	l := s.session()
	all, _ := tasks.All(l.Config, l.Stores) // Snapshot reports the error
	return l.own(ConfiguredJobs(all, time.Now().UTC()))
}

func (l session) own(jobs []diagnose.Job) diagnose.Snapshot {
	return diagnose.Snapshot{
		LockKey: l.Config.Election.LockKey, Now: time.Now().UTC(), Redis: diagnose.Redis{Host: l.LockStores.Host(), OK: true}, Jobs: jobs,
	}
}

// Election returns the Snapshot without the jobs, and does not open the sources of the jobs.
func (s *Site) Election(ctx context.Context) (diagnose.Snapshot, error) {
	return asking(ctx, s, func(l session) (diagnose.Snapshot, error) { return l.snapshot(ctx, nil, l.views()) })
}

func (l session) snapshot(ctx context.Context, jobs []diagnose.Job, views []View) (diagnose.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	own := l.own(jobs)
	if jobs != nil {
		own.Stores = l.askStores(ctx)
	}
	s, err := Gather(ctx, own, views)
	return operate.Bounded(s), err
}

// askWithin limits the time of the question whether a store answers. storesWithin limits the time of every further request to the store.
// These limits exist because a store that hangs must not delay the status page.
const askWithin, storesWithin = time.Second, 500 * time.Millisecond

// askStores asks all stores that jobs read whether they answer. It asks them at the same time.
func (l session) askStores(ctx context.Context) []diagnose.Store {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	used := l.Stores.Used(l.Config)
	names := slices.Sorted(maps.Keys(used))
	all := make([]diagnose.Store, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			all[i] = diagnose.Store{Name: name, Redis: diagnose.Redis{Host: used[name].Host(), OK: true}}
			if err := used[name].Ping(ctx); redisconn.Unavailable(err) != "" || err != nil && !errors.Is(err, redisconn.ErrRefused) {
				all[i].OK, all[i].Error = false, site.InStore(name, err.Error())
			}
		})
	}
	wg.Wait()
	return all
}

// Events returns the history of the election, the newest event first.
func (s *Site) Events(ctx context.Context, n int) ([]diagnose.Event, error) {
	return asking(ctx, s, func(l session) ([]diagnose.Event, error) {
		ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
		defer cancel()
		p, err := l.election.State(ctx, n)
		return eventsOf(p), err
	})
}

// LockEvents returns the histories of all elections of the configuration, by the keys of their locks.
func (s *Site) LockEvents(ctx context.Context, n int) (map[string][]diagnose.Event, error) {
	return asking(ctx, s, func(l session) (map[string][]diagnose.Event, error) {
		ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
		defer cancel()
		all := map[string][]diagnose.Event{}
		var problems []error
		for _, v := range l.views() {
			p, err := v.Election.State(ctx, n)
			if err != nil {
				problems = append(problems, err)
				continue
			}
			all[v.LockKey] = eventsOf(p)
		}
		return all, errors.Join(problems...)
	})
}

// stepDown asks the leader to step down, and waits until another term begins. The argument wait is the time limit. If an unexpected node
// leads in the end, stepDown returns an outcome with the name of that node, and an error.
func stepDown(ctx context.Context, l session, o operate.Order, wait time.Duration) (operate.Outcome, error) {
	before, err := l.state(ctx)
	if err != nil {
		return operate.Outcome{}, err
	}
	if err := successor(before, o.To, SilentAfter(l.Config.Election.PollInterval)); err != nil {
		return operate.Outcome{}, err
	}
	asked := time.Now()
	ask, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	owner, from, err := l.election.StepDown(ask, o.To, "asked "+o.Signature())
	if err != nil {
		return operate.Outcome{}, err
	}
	if from == "" {
		return operate.Outcome{}, heldByForeign(l.Config.Election.LockKey, owner)
	}
	out := operate.Outcome{Code: operate.CodeAsked, From: from, Text: from + " was asked to step down"}
	if wait <= 0 {
		return out, nil
	}
	p, over, err := until(ctx, l.election, asked.Add(wait), func(p redislock.ElectionState) bool {
		return p.Owner != "" && p.Owner != owner
	})
	if err != nil {
		return out, err
	}
	switch {
	case !over && p.Owner == "":
		return out, fmt.Errorf("%s has stepped down, and after %v no node has taken over: is there another node that may lead? "+
			"If not, %s leads again soon; see baton status", from, wait, from)
	case !over:
		return out, fmt.Errorf("%s was asked to step down, and after %v no other term has begun: "+
			"that node may be finishing its jobs; see baton status", from, wait)
	}
	out.Code, out.NodeID, out.Epoch, out.Took = operate.CodeDone, p.Leader, p.Epoch, text.Seconds(time.Since(asked))
	out.Text = fmt.Sprintf("%s leads after %s: epoch %d, %d ms after the order", out.NodeID, out.From, out.Epoch, out.Took.Milliseconds())
	if o.To != "" && out.NodeID != o.To {
		return out, fmt.Errorf("%s leads after %s, and not %s, which did not take the lock while the lock was reserved for that node; "+
			"see baton explain %s", out.NodeID, out.From, o.To, o.To)
	}
	return out, nil
}

// heldByForeign returns the error for an order to a lock holder that is not baton.
func heldByForeign(lockKey, owner string) error {
	return fmt.Errorf("lock %q is held by a client that is not baton (owner %s): it does not take orders", lockKey, owner)
}

// successor returns an error if the node in the argument to cannot take over the lock.
func successor(p redislock.ElectionState, to string, silent time.Duration) error {
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
		if coolDown := CoolDownOf(p, to); coolDown != "" {
			return fmt.Errorf("node %q cannot take the lock now: it lets other nodes lead %s", to, coolDown)
		}
		return nil
	}
	if p.Cut {
		return fmt.Errorf("node %q is not among the %d entries of the list of nodes that were read; the list is longer: see baton doctor",
			to, len(p.Nodes))
	}
	return fmt.Errorf("node %q is not among the live nodes: see baton status", to)
}
