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

// reloadRequest is a request that the node reads its configuration again.
type reloadRequest struct {
	by     string
	answer chan<- error // has room for the only answer
}

// reloads handles requests to read the configuration again, until ctx ends. The channel over is closed when the node's last run has ended.
func (n *node) reloads(ctx context.Context, cancel context.CancelCauseFunc, over <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.options.Reload:
			_ = n.reload(ctx, "SIGHUP", cancel, over) // the error has been logged
		case r := <-n.reloadRequests:
			r.answer <- n.reload(ctx, r.by, cancel, over)
		}
	}
}

// reload reads the configuration again and makes the node use all of it. If anything in the new configuration is wrong, the node continues
// with its present configuration.
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

// reread reads the configuration, and rejects every configuration that the command `baton config check` rejects.
func (n *node) reread() (config.Config, error) {
	if n.options.Load == nil {
		return config.Config{}, errors.New("this node has no configuration file to read again")
	}
	c, err := n.options.Load()
	if err != nil {
		return c, err
	}
	// For other users an unreadable file is only a doubt. The daemon itself reads the file, so an unreadable file is a mistake here.
	wrong, unread := doctor.CheckFiles(c, doctor.Options{Getenv: n.options.Getenv})
	if problems := slices.Concat(wrong, unread); len(problems) > 0 {
		return c, problems
	}
	if err := work.Refused(c, n.wardens); err != nil {
		return c, err
	}
	return c, c.Reloadable(n.inventory.Config)
}

// adopt makes the node use the configuration c. It does everything that can fail before it changes anything.
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

// joinNew makes the candidacies that the inventory in the argument after needs and that the node does not have. They do not campaign yet.
// If one of these candidacies cannot be made, joinNew makes none.
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

// rearrange makes every candidacy use the present configuration, starts the new candidacies, and ends the candidacies that no longer have
// jobs.
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

// leaveUnwanted leaves the elections of locks that have no job in the present configuration.
func (n *node) leaveUnwanted(ctx context.Context) {
	wanted := n.inventory.Config.LockKeys()
	for _, c := range n.all() {
		if !slices.Contains(wanted, c.lockKey) {
			n.withdraw(ctx, c)
		}
	}
}

// want returns the candidacy for a lock, and cancels the candidacy's withdrawal if one is in progress. It returns nil if there is no
// candidacy for the lock.
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

// awaitClosed waits until an earlier candidacy for the lock has ended completely.
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

// withdraw leaves an election after the last run under its lock has ended. Until then the candidacy still belongs to the node. So a later
// configuration that needs this candidacy again finds it.
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

// idleCheck is the interval between two checks whether the runs of a withdrawn candidacy have ended.
const idleCheck = 100 * time.Millisecond

// removeIdle removes a withdrawn candidacy from the node, unless one of its runs is in progress. The result wanted is true if the candidacy
// is needed again, or if another reload has removed it. If a later reload withdraws the candidacy again, that reload waits by itself.
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
