package direct

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/elector"
	"baton/internal/flush"
	"baton/internal/flush/sql"
	"baton/internal/redislock"
)

// FenceState is the fence of a job in its database.
type FenceState struct {
	Job      string `json:"job"`
	Database string `json:"database"`
	LockKey  string `json:"lock_key"`
	Epoch    int64  `json:"epoch"`
	Owner    string `json:"owner"`
	// Refused means that the epoch is more than 30 days ahead of Redis' clock, so that no term can exceed it.
	Refused bool `json:"refused"`
}

// EpochState is the epoch of a lock in Redis.
type EpochState struct {
	LockKey string `json:"lock_key"`
	Epoch   int64  `json:"epoch"` // 0 if the value is no number
	Refused bool   `json:"refused"`
}

// Fences contains the epochs of the configuration's locks and the fences of its jobs.
type Fences struct {
	Locks  []EpochState `json:"locks"`
	Fences []FenceState `json:"fences"`
	// Now is the time of Redis' clock, which decides Refused.
	Now time.Time `json:"now"`
}

// Refused reports whether an epoch or a fence prevents a node from leading or writing.
func (f Fences) Refused() bool {
	return slices.ContainsFunc(f.Locks, func(l EpochState) bool { return l.Refused }) ||
		slices.ContainsFunc(f.Fences, func(s FenceState) bool { return s.Refused })
}

// FencesOptions contains the options of ResetFences.
type FencesOptions struct {
	Reason  string // for the event history
	Version string
	// Note is called with a text for people at each step.
	Note func(text string)
	// Exit must end the process immediately. It is called if a database is still working at a time when another node may have the lock.
	Exit func(code int)
}

// ListFences reads the epochs and the fences. If a database does not answer, it returns an error together with the fences in the other
// databases.
func ListFences(ctx context.Context, c config.Config) (_ Fences, err error) {
	r, err := openFences(c)
	if err != nil {
		return Fences{}, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	return r.read(ctx)
}

// ResetFences replaces the fences whose epochs no term can exceed, and resets such an epoch of a lock in Redis. It takes the locks of the
// affected jobs as a node does, one after the other. It then waits for as long as a lease lasts, so that no earlier leader still trusts its
// lease. It returns the replaced fences. While it holds a lock, the lock's jobs do not run.
func ResetFences(ctx context.Context, c config.Config, o FencesOptions) (reset []FenceState, err error) {
	c.Node.ID += "-fence-reset" // the list of nodes contains every client that has held the lock, under its node id
	c.Node.Priority = config.MaxPriority
	r, err := openFences(c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	found, err := r.read(ctx)
	if err == nil {
		err = clocksAgree(found.Now, time.Now())
	}
	if err != nil {
		return nil, fmt.Errorf("nothing was changed: %w", err)
	}
	for _, lock := range found.Locks {
		under := slices.DeleteFunc(slices.Clone(found.Fences), func(f FenceState) bool { return !f.Refused || f.LockKey != lock.LockKey })
		if !lock.Refused && len(under) == 0 {
			continue
		}
		done, err := r.reset(ctx, lock, under, o)
		reset = append(reset, done...)
		if err != nil {
			return reset, fmt.Errorf("lock %q: %w", lock.LockKey, err)
		}
	}
	return reset, nil
}

// clocksAgree returns an error if Redis' clock is too wrong to show which epochs are ahead. With a clock that is behind, ResetFences would
// lower correct fences.
func clocksAgree(redis, host time.Time) error {
	const most = 24 * time.Hour
	if apart := redis.Sub(host).Abs(); apart > most {
		return fmt.Errorf("the clocks of redis (%s) and of this host (%s) are %v apart: correct the wrong clock first",
			redis.UTC().Format(time.RFC3339), host.UTC().Format(time.RFC3339), apart.Round(time.Hour))
	}
	return nil
}

// fenceStores contains the connections for reading and replacing fences.
type fenceStores struct {
	config config.Config
	locks  *site.Locks
	dbs    site.Databases
}

func openFences(c config.Config) (*fenceStores, error) {
	dbs, err := site.OpenDatabases(c)
	if err != nil {
		return nil, err
	}
	locks, err := site.OpenLocks(c)
	if err != nil {
		return nil, errors.Join(err, dbs.Close())
	}
	return &fenceStores{c, locks, dbs}, nil
}

func (d *fenceStores) close() error { return errors.Join(d.locks.Close(), d.dbs.Close()) }

func (d *fenceStores) read(ctx context.Context) (Fences, error) {
	found := Fences{Locks: []EpochState{}, Fences: []FenceState{}}
	for _, key := range d.config.LockKeys() {
		p, err := d.locks.State(ctx, key)
		if err != nil {
			return found, err
		}
		found.Now = p.Now
		found.Locks = append(found.Locks, EpochState{key, p.Epoch, p.Forged})
	}
	locks := map[string]string{}
	for _, j := range d.config.Jobs {
		locks[j.Name] = cmp.Or(j.Lock, d.config.Election.LockKey)
	}
	var problems []error
	for name, jobs := range site.JobsByDatabase(d.config) {
		db := d.dbs[name]
		if db == nil {
			continue // this database is used only by jobs that run commands
		}
		fences, err := d.ask(ctx, db, jobs)
		if err != nil {
			problems = append(problems, fmt.Errorf("database %q: %w", name, err))
		}
		for _, f := range fences {
			refused := !redislock.Plausible(f.Epoch, 0, found.Now.UnixMilli())
			found.Fences = append(found.Fences, FenceState{f.Job, name, locks[f.Job], f.Epoch, f.Owner, refused})
		}
	}
	slices.SortFunc(found.Fences, func(a, b FenceState) int { return cmp.Compare(a.Job, b.Job) })
	return found, errors.Join(problems...)
}

func (d *fenceStores) ask(ctx context.Context, db *sql.Store, jobs []string) ([]flush.Fence, error) {
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	return db.Fences(ctx, jobs)
}

// reset replaces the fences of the jobs under one lock.
func (d *fenceStores) reset(ctx context.Context, lock EpochState, refused []FenceState, o FencesOptions) ([]FenceState, error) {
	before, err := d.locks.State(ctx, lock.LockKey)
	if err != nil {
		return nil, err
	}
	if lock.Refused {
		broken, err := d.locks.BreakUp(ctx, lock.LockKey, o.Reason)
		if err != nil && !errors.Is(err, redislock.ErrNotHeld) { // another process has repaired the epoch in the meantime
			return nil, err
		}
		left := broken.Left.Round(time.Millisecond)
		o.Note(fmt.Sprintf("lock %q: epoch %d was removed from redis; no node leads for %v", lock.LockKey, lock.Epoch, left))
	}
	if len(refused) == 0 {
		return nil, nil
	}
	own, err := d.locks.Lock(lock.LockKey, o.Version)
	if err != nil {
		return nil, err
	}
	defer own.Close()
	defer own.LeaveIfAsked(context.WithoutCancel(ctx))
	var beside sync.WaitGroup
	defer beside.Wait()
	ctx, enough := context.WithCancelCause(ctx)
	defer enough(nil)
	beside.Go(func() { d.makeRoom(ctx, lock.LockKey, o) })
	var done []FenceState
	var failed error
	el, err := elector.New(own, func(ctx context.Context, term *elector.Term) error {
		defer enough(elector.ErrDone)
		done, failed = d.replace(ctx, term, max(before.TTL, d.config.Election.TTL), refused, o)
		return nil
	}, elector.Config{
		NodeID: d.config.Node.ID, NewOwner: site.NewID,
		Timing: site.Timing(d.config.Election), PollInterval: d.config.Election.PollInterval,
		Observe: func(ev elector.Event) {
			switch ev.Kind {
			case elector.EventStandby:
				o.Note(fmt.Sprintf("lock %q: waiting, %s", lock.LockKey, site.HeldBy(ev)))
			case elector.EventWaiting, elector.EventStopping:
				o.Note(fmt.Sprintf("lock %q: %s", lock.LockKey, ev.Reason))
			case elector.EventStoreLost:
				o.Note(fmt.Sprintf("lock %q: %v; trying again", lock.LockKey, ev.Err))
			}
		},
		Die: func(reason string) {
			o.Note("ending: " + reason)
			o.Exit(site.ExitLockLost)
		},
	})
	if err != nil {
		return nil, err
	}
	return done, errors.Join(el.Run(ctx), failed)
}

// makeRoom asks the leader to hand the lock to this process, until this process holds the lock.
func (d *fenceStores) makeRoom(ctx context.Context, lockKey string, o FencesOptions) {
	for every := d.config.Election.PollInterval; ; {
		p, err := d.locks.State(ctx, lockKey)
		if err == nil && p.Leader == d.config.Node.ID {
			return
		}
		if err == nil && p.Owner != "" && p.StepDown == "" {
			_, _, _ = d.locks.ForLock(lockKey).Election().StepDown(ctx, d.config.Node.ID, o.Reason) // the loop tries again
		}
		if rest(ctx, every) != nil {
			return
		}
	}
}

// replace waits for as long as a lease lasts, and then replaces the refused fences, while this process leads.
func (d *fenceStores) replace(
	ctx context.Context, term *elector.Term, lease time.Duration, refused []FenceState, o FencesOptions,
) (done []FenceState, err error) {
	o.Note(fmt.Sprintf("the lock is taken, epoch %d; waiting %v, until no earlier leader trusts its lease", term.Epoch(), lease))
	if err := rest(ctx, lease); err != nil {
		return nil, fmt.Errorf("nothing was changed: the lock was not kept: %w", context.Cause(ctx))
	}
	for _, f := range refused {
		old := flush.Fence{Job: f.Job, Epoch: f.Epoch, Owner: f.Owner}
		to := flush.Fence{Job: f.Job, Epoch: term.Epoch(), Owner: term.Owner(), NodeID: d.config.Node.ID, Lease: d.config.Election.TTL}
		if err := d.dbs[f.Database].ResetFence(ctx, old, to); err != nil {
			return done, fmt.Errorf("database %q: %w", f.Database, err)
		}
		f.Epoch, f.Owner, f.Refused = to.Epoch, to.Owner, false
		done = append(done, f)
	}
	return done, nil
}
