package testsupport

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// What Redis refuses with while it is up, and how a test gets it there:
//
//	READONLY     a replica (RedisReplicaOf)
//	MASTERDOWN   a replica started with RedisHidesStaleData too, after its master's Kill
//	NOREPLICAS   RedisNeedsReplicas
//	CLUSTERDOWN  RedisClusterNode alone, or StartCluster after a master's and its replica's Kill
//	MISCONF      FailSaves
//	LOADING      RestartLoading

// fillers are the keys that RestartLoading adds so that there is something to load.
const fillers = 1000

// FailSaves makes the server answer writes with MISCONF: it is told to save
// snapshots, and cannot. Call HealSaves before a Restart.
func (r *RedisDaemon) FailSaves() error {
	// A directory with something in it cannot be replaced by the snapshot, by root
	// neither.
	if err := os.MkdirAll(filepath.Join(r.snapshot(), "in the way"), 0o700); err != nil {
		return err
	}
	// A schedule that never comes due within a test: no schedule, no MISCONF.
	if _, err := r.do("CONFIG", "SET", "save", "86400 1000000", "stop-writes-on-bgsave-error", "yes"); err != nil {
		return err
	}
	return r.save("err")
}

// HealSaves ends FailSaves.
func (r *RedisDaemon) HealSaves() error {
	if err := os.RemoveAll(r.snapshot()); err != nil {
		return err
	}
	if err := r.save("ok"); err != nil {
		return err
	}
	if _, err := r.do("CONFIG", "SET", "save", ""); err != nil {
		return err
	}
	return os.Remove(r.snapshot()) // which a restarted server would load
}

// save tries to write a snapshot until it ends as wanted.
func (r *RedisDaemon) save(want string) error {
	return await(readyWithin, "a snapshot ends with "+want, func() error {
		if err := r.infoHas("persistence", "rdb_bgsave_in_progress:0"); err != nil {
			return err
		}
		err := r.infoHas("persistence", "rdb_last_bgsave_status:"+want)
		if err != nil {
			_, bgsave := r.do("BGSAVE")
			err = errors.Join(err, bgsave)
		}
		return err
	})
}

func (r *RedisDaemon) snapshot() string { return filepath.Join(r.dir.Path, "dump.rdb") }

// RestartLoading restarts the server with the data that it has, and returns while it
// loads them, which takes about d: it answers LOADING. For a server without RedisAOF,
// to which it adds keys to load.
func (r *RedisDaemon) RestartLoading(d time.Duration) error {
	if err := r.infoHas("persistence", "aof_enabled:0"); err != nil {
		return fmt.Errorf("only a snapshot is loaded slowly: %w", err)
	}
	c, err := r.Dial()
	if err != nil {
		return err
	}
	defer c.Close()
	for i := range fillers {
		if err := c.Send("SET", fmt.Sprintf("filler:%d", i), "1"); err != nil {
			return err
		}
	}
	if err := c.Send("SAVE"); err != nil {
		return err
	}
	if _, err := c.Do(""); err != nil {
		return fmt.Errorf("save what is to be loaded: %w", err)
	}
	r.loadDelay.Store(max(1, d.Microseconds()/fillers))
	defer r.loadDelay.Store(0)
	if err := r.Restart(); err != nil {
		return err
	}
	if _, err := r.do("EXISTS", "baton"); err == nil {
		return fmt.Errorf("the server has loaded its data within less than %s", d)
	}
	return nil
}

// AwaitLoaded waits until RestartLoading's loading is over.
func (r *RedisDaemon) AwaitLoaded() error {
	return await(readyWithin, "the server has loaded its data", func() error {
		_, err := r.do("EXISTS", "baton")
		return err
	})
}

// FailSaves makes the server answer writes with MISCONF: it is told to save
// snapshots, and cannot. Call HealSaves before a Restart.
func (r *Redis) FailSaves() { r.t.Helper(); r.check("break the snapshots of", r.daemon.FailSaves()) }

// HealSaves ends FailSaves.
func (r *Redis) HealSaves() { r.t.Helper(); r.check("heal the snapshots of", r.daemon.HealSaves()) }

// RestartLoading restarts the server with the data that it has, and returns while it
// loads them, which takes about d: it answers LOADING. For a server without RedisAOF,
// to which it adds keys to load.
func (r *Redis) RestartLoading(d time.Duration) {
	r.t.Helper()
	r.check("restart, loading,", r.daemon.RestartLoading(d))
}

// AwaitLoaded waits until RestartLoading's loading is over.
func (r *Redis) AwaitLoaded() { r.t.Helper(); r.check("await", r.daemon.AwaitLoaded()) }
