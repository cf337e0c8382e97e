package testsupport

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Each line shows an error with which a running Redis refuses commands, and how a test causes it:
//
//	READONLY     a replica (RedisReplicaOf)
//	MASTERDOWN   a replica that was also started with RedisHidesStaleData, after its master's Kill
//	NOREPLICAS   RedisNeedsReplicas
//	CLUSTERDOWN  RedisClusterNode alone, or StartCluster after a master's and its replica's Kill
//	MISCONF      FailSaves
//	LOADING      RestartLoading

// fillers is the number of keys that RestartLoading adds, so that loading takes time.
const fillers = 1000

// FailSaves makes the server answer writes with MISCONF: its settings ask for snapshots, but it cannot save any. Call HealSaves before a
// Restart.
func (r *RedisDaemon) FailSaves() error {
	// The snapshot cannot replace a directory that contains a file, even if root runs the server.
	if err := os.MkdirAll(filepath.Join(r.snapshot(), "in the way"), 0o700); err != nil {
		return err
	}
	// The schedule never becomes due within a test, but without a schedule Redis does not answer MISCONF.
	if _, err := r.do("CONFIG", "SET", "save", "86400 1000000", "stop-writes-on-bgsave-error", "yes"); err != nil {
		return err
	}
	return r.save("err")
}

// HealSaves ends the effect of FailSaves.
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
	return os.Remove(r.snapshot()) // otherwise a restarted server would load the snapshot
}

// save tries to write a snapshot until the server reports the result want, which is "ok" or "err".
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

// RestartLoading restarts the server with its data, and returns while the server loads the data. The load takes about d, and the server
// answers LOADING until the load has ended. RestartLoading adds keys, so that the load takes time. The server must not have the option
// RedisAOF.
func (r *RedisDaemon) RestartLoading(d time.Duration) error {
	if err := r.infoHas("persistence", "aof_enabled:0"); err != nil {
		return fmt.Errorf("RestartLoading needs a server without AOF: %w", err)
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
		return fmt.Errorf("save the data to be loaded: %w", err)
	}
	r.loadDelay.Store(max(1, d.Microseconds()/fillers))
	defer r.loadDelay.Store(0)
	if err := r.Restart(); err != nil {
		return err
	}
	if _, err := r.do("EXISTS", "baton"); err == nil {
		return fmt.Errorf("the server loaded its data in less than %s", d)
	}
	return nil
}

// AwaitLoaded waits until the server has loaded its data, after RestartLoading.
func (r *RedisDaemon) AwaitLoaded() error {
	return await(readyWithin, "the server has loaded its data", func() error {
		_, err := r.do("EXISTS", "baton")
		return err
	})
}

// FailSaves makes the server answer writes with MISCONF: its settings ask for snapshots, but it cannot save any. Call HealSaves before a
// Restart.
func (r *Redis) FailSaves() { r.t.Helper(); r.check("break the snapshots of", r.daemon.FailSaves()) }

// HealSaves ends the effect of FailSaves.
func (r *Redis) HealSaves() { r.t.Helper(); r.check("heal the snapshots of", r.daemon.HealSaves()) }

// RestartLoading restarts the server with its data, and returns while the server loads the data. The load takes about d, and the server
// answers LOADING until the load has ended. RestartLoading adds keys, so that the load takes time. The server must not have the option
// RedisAOF.
func (r *Redis) RestartLoading(d time.Duration) {
	r.t.Helper()
	r.check("restart, loading,", r.daemon.RestartLoading(d))
}

// AwaitLoaded waits until the server has loaded its data, after RestartLoading.
func (r *Redis) AwaitLoaded() { r.t.Helper(); r.check("await", r.daemon.AwaitLoaded()) }
