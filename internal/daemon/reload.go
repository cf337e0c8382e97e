package daemon

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/daemon/inventory"
	"baton/internal/daemon/tasks"
	"baton/internal/daemon/work"
	"baton/internal/doctor"
)

// reloadRequest is a request to read the configuration again.
type reloadRequest struct {
	by     string
	answer chan<- error // has room for the one answer
}

// reloads carries out requests to read the configuration again until ctx ends. over is
// closed when no run goes on any more.
func (n *node) reloads(ctx context.Context, cancel context.CancelCauseFunc, over <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.options.Reload:
			_ = n.reload(ctx, "SIGHUP", cancel, over) // it has been logged
		case r := <-n.reloadRequests:
			r.answer <- n.reload(ctx, r.by, cancel, over)
		}
	}
}

// reload reads the configuration again and puts it into force: all of it, or, if there
// is anything wrong with it, nothing.
func (n *node) reload(ctx context.Context, by string, cancel context.CancelCauseFunc, over <-chan struct{}) error {
	log := n.log.With(zap.String("by", by))
	c, err := n.reread()
	if err == nil {
		err = n.adopt(ctx, c, cancel, over)
	}
	n.metrics.Reloaded(err == nil)
	if err != nil {
		log.Error("the configuration was not reloaded: the old one stays in force", zap.Error(err))
		return err
	}
	log.Info("the configuration was reloaded", zap.Int("jobs", len(c.Jobs)), zap.String("config_hash", config.Hash(c)))
	return nil
}

// reread reads the configuration, and refuses what `config check` does.
func (n *node) reread() (config.Config, error) {
	if n.options.Load == nil {
		return config.Config{}, errors.New("this node has no configuration file to read again")
	}
	c, err := n.options.Load()
	if err != nil {
		return c, err
	}
	// Other users may only doubt a file that they cannot read. The daemon itself reads it, so it is a mistake here.
	wrong, unread := doctor.CheckFiles(c, doctor.Options{Getenv: n.options.Getenv})
	if problems := slices.Concat(wrong, unread); len(problems) > 0 {
		return c, problems
	}
	if err := work.Refused(c, n.wardens); err != nil {
		return c, err
	}
	return c, c.Reloadable(n.inventory.Config)
}

// adopt goes over to a configuration. Everything that can fail is done first.
func (n *node) adopt(ctx context.Context, c config.Config, cancel context.CancelCauseFunc, over <-chan struct{}) error {
	before := n.inventory
	after, err := before.Next(c, n.store, n.reports())
	if err != nil {
		return err
	}
	joined, err := n.joinNew(ctx, after)
	if err != nil {
		return errors.Join(err, after.CloseBut(before))
	}
	n.metrics.AddJobs(jobNames(c)...)
	n.metrics.AddFlushes(flushNames(c)...)
	n.metrics.AddComparable(tasks.Comparable(c)...)
	n.metrics.AddCaptures(work.CaptureCodes(), tasks.Captures(c)...)
	work.ShowLateAfter(n.metrics, c)
	n.wardens.Keep(commandsToCome(c))
	n.mu.Lock()
	n.inventory = after
	n.edition++
	n.mu.Unlock()
	n.metrics.ForgetStores(n.stores.Use(after.Stores.Used(c))...)
	n.notifications.Reload(c)
	n.rearrange(ctx, joined, cancel)
	kept := jobNames(c)
	gone := slices.DeleteFunc(jobNames(before.Config), func(name string) bool { return slices.Contains(kept, name) })
	n.metrics.ForgetJobs(gone...)
	if n.options.Reloaded != nil {
		n.options.Reloaded(c)
	}
	if before.IsReplacedBy(after) {
		n.retiring.Go(func() { before.Retire(after, over, n.log) })
	}
	return nil
}

// joinNew makes the candidacies that a configuration needs and the node does not have.
// They do not campaign yet. If one cannot be made, none is.
func (n *node) joinNew(ctx context.Context, after inventory.Inventory) (joined []*candidacy, err error) {
	var missing []string
	wanted := after.Config.LockKeys()
	if len(wanted) > 1 && n.lockStores.Shared == nil {
		n.lockStores.Share()
	}
	for _, key := range wanted {
		if n.want(key) != nil {
			continue
		}
		missing = append(missing, key)
		err = errors.Join(err, n.awaitClosed(ctx, key))
	}
	if err == nil {
		joined, err = n.newCandidacies(ctx, missing, after)
	}
	if err != nil {
		n.leaveUnwanted(ctx)
	}
	return joined, err
}

// rearrange has every candidacy go over to the configuration in force, begins those that
// are new, and leaves those that no job is under any more.
func (n *node) rearrange(ctx context.Context, joined []*candidacy, cancel context.CancelCauseFunc) {
	for _, key := range n.inventory.Config.LockKeys() {
		if c := n.want(key); c != nil {
			c.update(ctx, n.inventory.Workload(key))
		}
	}
	n.mu.Lock()
	for _, c := range joined {
		n.candidacies = append(n.candidacies, c)
		n.start(ctx, c, cancel)
	}
	n.mu.Unlock()
	n.leaveUnwanted(ctx)
}

// leaveUnwanted leaves the elections that no job of the configuration in force is under.
func (n *node) leaveUnwanted(ctx context.Context) {
	wanted := n.inventory.Config.LockKeys()
	for _, c := range n.all() {
		if !slices.Contains(wanted, c.lockKey) {
			n.withdraw(ctx, c)
		}
	}
}

// want returns the candidacy for a lock and cancels its withdrawal. It returns nil without one.
func (n *node) want(lockKey string) *candidacy {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.candidacies {
		if c.lockKey == lockKey {
			c.withdrawn = false
			return c
		}
	}
	return nil
}

// awaitClosed waits until an earlier candidacy for the lock has been left altogether.
func (n *node) awaitClosed(ctx context.Context, lockKey string) error {
	n.mu.Lock()
	closed, ok := n.beingClosed[lockKey]
	delete(n.beingClosed, lockKey)
	n.mu.Unlock()
	if !ok {
		return nil
	}
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// withdraw leaves an election once the runs under its lock have ended. Until then the
// candidacy is the node's: a configuration that wants it back finds it.
func (n *node) withdraw(ctx context.Context, c *candidacy) {
	n.mu.Lock()
	already := c.withdrawn
	c.withdrawn = true
	n.mu.Unlock()
	if already {
		return
	}
	c.update(ctx, n.inventory.Workload(c.lockKey))
	n.running.Go(func() {
		for work.Rest(ctx, idleCheck) == nil {
			switch gone, wanted := n.removeIdle(c); {
			case gone:
				c.close()
				close(c.closed)
				return
			case wanted:
				return
			}
		}
	})
}

// idleCheck is the interval between two checks whether the awaited runs have ended.
const idleCheck = 100 * time.Millisecond

// removeIdle removes a withdrawn candidacy from the node's, unless one of its runs goes on. It
// reports wanted if the candidacy is wanted again, or if another reload has removed it. A
// reload that withdraws it once more starts another wait.
func (n *node) removeIdle(c *candidacy) (gone, wanted bool) {
	idle := len(c.runner.Running()) == 0
	n.mu.Lock()
	defer n.mu.Unlock()
	wanted = !c.withdrawn || !slices.Contains(n.candidacies, c)
	if wanted || !idle {
		return false, wanted
	}
	n.candidacies = slices.DeleteFunc(n.candidacies, func(other *candidacy) bool { return other == c })
	n.beingClosed[c.lockKey] = c.closed
	delete(n.roles, c.lockKey)
	return true, false
}
