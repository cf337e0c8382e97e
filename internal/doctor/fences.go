package doctor

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/finding"
	"baton/internal/flush"
)

// examineFences finds fences that a leader has taken whose term this Redis does not know. Usually another installation has the same lock
// key, but another Redis. The first run of a job would take its fence away from that leader.
func examineFences(ctx context.Context, c config.Config) (found []Finding) {
	locks, err := site.OpenLocks(c)
	if err != nil {
		return nil // another check reports this problem, and the problems of the databases
	}
	defer func() { _ = locks.Close() }() // no data was written
	fences := fencesByDatabase(ctx, c)
	// The epochs are read after the fences, because a leader raises the epoch in Redis before it takes a fence.
	states, unread, err := locks.States(ctx, c.LockKeys())
	if err != nil || unread != nil {
		return nil
	}
	lockOf := map[string]string{}
	for _, j := range c.Jobs {
		lockOf[j.Name] = cmp.Or(j.Lock, c.Election.LockKey)
	}
	known := int64(0)
	for _, s := range states {
		if s.Forbidden {
			return nil
		}
		known = max(known, s.Epoch)
	}
	for name, all := range fences {
		for _, f := range all {
			if f.Epoch <= known { // a job that has got another lock still has the epoch of its old lock
				continue
			}
			found = append(found, finding.UnknownLeader.Of(jobSubject(f.Job),
				fmt.Sprintf("its fence in database %q has epoch %d, and the last epoch of lock %q in this Redis is %d",
					name, f.Epoch, lockOf[f.Job], states[lockOf[f.Job]].Epoch),
				"another leader may write to this database, and then the two leaders take the fence from each other",
				"if this Redis has lost its data, or if the job's earlier lock is no longer configured, do nothing: the next leader has a "+
					"higher epoch. Otherwise a leader that this Redis does not know has taken the fence. "+flush.UnknownLeader))
		}
	}
	return found
}

// fencesByDatabase asks all databases at the same time. A database that does not answer must leave time for the locks.
func fencesByDatabase(ctx context.Context, c config.Config) map[string][]flush.Fence {
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	found := map[string][]flush.Fence{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for name, jobs := range site.JobsByDatabase(c) {
		wg.Go(func() {
			fences := fencesIn(ctx, c, name, jobs)
			mu.Lock()
			defer mu.Unlock()
			found[name] = fences
		})
	}
	wg.Wait()
	return found
}

// fencesIn returns the fences of jobs in a database. It returns none if the database cannot be read, or if the election of the jobs is
// another one.
func fencesIn(ctx context.Context, c config.Config, database string, jobs []string) []flush.Fence {
	if _, ok := c.Databases[database]; !ok {
		return nil // these jobs run commands
	}
	store, err := site.OpenDatabase(c, database)
	if err != nil {
		return nil
	}
	defer func() { _ = store.Close() }() // no data was written
	fences, err := store.Fences(ctx, jobs)
	if err != nil {
		return nil
	}
	return fences
}
