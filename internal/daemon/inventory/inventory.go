// Package inventory holds the databases, stores and tasks of a configuration. If a reload changes only some of them, the others are kept.
package inventory

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/daemon/abdication"
	"baton/internal/daemon/site"
	"baton/internal/daemon/tasks"
	"baton/internal/daemon/work"
	"baton/internal/flush/sql"
	"baton/internal/redisconn"
)

// Workload holds the part of a configuration whose jobs run under the same lock.
type Workload struct {
	work.Load
	Hash   string    // the hash of the whole configuration
	Since  time.Time // the time since which the workload is in force
	Probes site.Databases
}

// Inventory holds the connections and tasks that a configuration needs.
type Inventory struct {
	Config            config.Config
	Hash              string    // of Config
	Since             time.Time // the time since which Config is in force; a reload with the same jobs keeps it
	Databases, Probes site.Databases
	Stores            site.Stores // the inventory owns these stores, except the store of the lock
	Tasks             []work.Task
	sums              map[string]string // checksums of the databases' data source names
	uses              map[use]*atomic.Int64
}

// use is the pair of stores that one run of a flush uses.
type use struct {
	from *redisconn.Store
	to   *sql.Store
}

func (i Inventory) useOf(t work.Task) use {
	return use{i.Stores.Of(t.Config), i.Databases[t.Config.Flush.To.Database]}
}

// countUses counts, for each pair of stores, the runs that use these stores. The counters pass from one configuration to the next, because
// a run may last longer than several configurations.
func (i *Inventory) countUses(before Inventory) {
	i.uses = maps.Clone(before.uses)
	if i.uses == nil {
		i.uses = map[use]*atomic.Int64{}
	}
	needed := map[use]bool{}
	for at, t := range i.Tasks {
		if t.Config.IsCommand() {
			continue
		}
		u := i.useOf(t)
		if needed[u] = true; i.uses[u] == nil {
			i.uses[u] = new(atomic.Int64)
		}
		i.Tasks[at].CountIn(i.uses[u])
	}
	maps.DeleteFunc(i.uses, func(u use, runs *atomic.Int64) bool { return !needed[u] && runs.Load() == 0 })
}

// Workload returns the workload of a lock.
func (i Inventory) Workload(lockKey string) *Workload {
	w := &Workload{
		Load: work.Load{Config: Under(i.Config, lockKey), Tasks: tasks.Under(i.Tasks, lockKey), Databases: i.Databases},
		Hash: i.Hash, Since: i.Since, Probes: i.Probes,
	}
	if lockKey == i.Config.Election.LockKey {
		w.Staged = tasks.StagedBy(work.Plain(i.Tasks))
	}
	return w
}

// Next returns the inventory of the configuration c, and reuses the unchanged parts of i.
func (i Inventory) Next(c config.Config, lock *redisconn.Store, to work.Reports) (Inventory, error) {
	after := Inventory{Config: c, Hash: config.Hash(c), Since: time.Now()}
	if i.Hash == after.Hash && !i.Since.IsZero() {
		after.Since = i.Since
	}
	var err error
	if after.sums, err = sourceSums(c); err != nil {
		return Inventory{}, err
	}
	same := sameDatabases(i, after)
	if after.Databases, err = reopen(i.Databases, same, c, site.OpenDatabases); err != nil {
		return Inventory{}, err
	}
	if after.Probes, err = reopen(i.Probes, same, c, abdication.OpenProbes); err != nil {
		return Inventory{}, errors.Join(err, after.CloseBut(i))
	}
	if after.Stores, err = i.Stores.Next(i.Config, c, lock); err != nil {
		return Inventory{}, errors.Join(err, after.CloseBut(i))
	}
	if after.Tasks, err = work.New(c, after.Stores, after.Databases, to); err != nil {
		return Inventory{}, errors.Join(err, after.CloseBut(i))
	}
	for at, t := range after.Tasks {
		kept := slices.IndexFunc(i.Tasks, func(old work.Task) bool {
			return reflect.DeepEqual(old.Config, t.Config) &&
				(t.Config.IsCommand() || same[t.Config.Flush.To.Database] && i.Stores.Of(t.Config) == after.Stores.Of(t.Config))
		})
		if kept >= 0 {
			after.Tasks[at] = i.Tasks[kept]
		}
	}
	after.countUses(i)
	return after, nil
}

// CloseBut closes the databases and stores of this inventory that are missing from the inventory in the argument kept.
func (i Inventory) CloseBut(kept Inventory) error {
	return errors.Join(i.Databases.Without(kept.Databases).Close(), i.Probes.Without(kept.Probes).Close(),
		i.Stores.Without(kept.Stores).Close())
}

// IsReplacedBy reports whether the inventory in the argument after lacks a database or a store of this inventory.
func (i Inventory) IsReplacedBy(after Inventory) bool {
	return len(i.Databases.Without(after.Databases))+len(i.Probes.Without(after.Probes))+len(i.Stores.Without(after.Stores)) > 0
}

// sourceSums returns a checksum of each data source name. A data source name may be in a file, which can change while the configuration
// stays the same.
func sourceSums(c config.Config) (map[string]string, error) {
	sums := map[string]string{}
	for name, d := range c.Databases {
		dsn, err := d.DSN()
		if err != nil {
			return nil, fmt.Errorf("databases.%s: %w", name, err)
		}
		sum := sha256.Sum256([]byte(d.Driver + " " + dsn))
		sums[name] = string(sum[:])
	}
	return sums, nil
}

// sameDatabases returns the databases that have the same source and the same number of connections in both inventories.
func sameDatabases(before, after Inventory) map[string]bool {
	same := map[string]bool{}
	for name, sum := range after.sums {
		same[name] = before.sums[name] == sum && site.Connections(before.Config, name) == site.Connections(after.Config, name)
	}
	return same
}

// reopen opens the databases of c. It reuses the open databases that c leaves unchanged.
func reopen(
	open site.Databases, same map[string]bool, c config.Config, openAll func(config.Config) (site.Databases, error),
) (site.Databases, error) {
	c.Databases = maps.Clone(c.Databases)
	kept := site.Databases{}
	for name, db := range open {
		if same[name] {
			kept[name] = db
			delete(c.Databases, name)
		}
	}
	opened, err := openAll(c)
	maps.Copy(kept, opened)
	return kept, err
}

// checkEvery is the pause between two checks whether the runs that still use a database have ended.
const checkEvery = 100 * time.Millisecond

// Retire closes the stores that the inventory in the argument after no longer uses. It closes a store after the last run that uses this
// store has ended.
func (i Inventory) Retire(after Inventory, over <-chan struct{}, log *zap.Logger) {
	const first = 5 * time.Second // a run may have its slot, but may not have begun
	databases, stores := i.Databases.Without(after.Databases), i.Stores.Without(after.Stores)
	var old []*atomic.Int64
	for u, runs := range i.uses {
		if has(databases, u.to) || has(stores, u.from) {
			old = append(old, runs)
		}
	}
	pause := first
	for busy := true; busy; pause = checkEvery {
		select {
		case <-over:
			busy = false
			continue
		case <-time.After(pause):
		}
		busy = false
		for _, runs := range old {
			busy = busy || runs.Load() > 0
		}
	}
	if err := i.CloseBut(after); err != nil {
		log.Warn("cannot close databases and stores", zap.Error(err))
	}
}

func has[T comparable](among map[string]T, one T) bool {
	return slices.Contains(slices.Collect(maps.Values(among)), one)
}

// Under returns a copy of c that contains only the jobs under some locks. The copy uses as little memory as possible, because there may be
// hundreds of locks.
func Under(c config.Config, lockKeys ...string) config.Config {
	c.Election.LockKey = lockKeys[0]
	var jobs []config.Job
	for _, j := range c.Jobs {
		if slices.Contains(lockKeys, j.Lock) {
			jobs = append(jobs, j)
		}
	}
	c.Jobs = jobs
	return c
}
