package config

import (
	"fmt"
	"slices"
	"strings"
)

// namedLock is a lock, with the setting that contains its key.
type namedLock struct{ key, path string }

// locks checks that all locks are different, and that no two locks share the keys that baton keeps beside them. It also checks that no job
// flushes a lock, because that would remove the lock.
func (v *validator) locks() {
	all := []namedLock{{v.Election.LockKey, "election.lock_key"}}
	for i, j := range v.Jobs {
		if slices.ContainsFunc(all, func(l namedLock) bool { return l.key == j.Lock }) {
			continue // several jobs may share a lock
		}
		at := fmt.Sprintf("jobs[%d].lock", i)
		v.lockKey(at, j.Lock)
		for _, l := range all {
			switch {
			case stagedAs(l.key) == stagedAs(j.Lock):
				v.fail(at, "the keys that belong to this lock have the same names as those of lock %q in %s; "+
					"write the same lock in both places, or choose another name", l.key, l.path)
			case beside(l.key, j.Lock):
				v.fail(at, "%q is a key that belongs to lock %q in %s; choose another name", j.Lock, l.key, l.path)
			case beside(j.Lock, l.key):
				v.fail(at, "lock %q in %s is a key that belongs to this lock; choose another name", l.key, l.path)
			}
		}
		all = append(all, namedLock{j.Lock, at})
	}
	for i, j := range v.Jobs {
		v.unlocked(fmt.Sprintf("jobs[%d].flush.from", i), j.Flush.From, all)
	}
}

// unlocked rejects a source that would flush a lock, or a key that baton keeps beside a lock.
func (v *validator) unlocked(path string, f From, all []namedLock) {
	for key, live := range map[string]string{"key": f.Key, "changed": f.Changed} {
		keys := []string{live}
		if key == "key" && !f.Kind().Keyed() {
			keys, _ = f.Kind().Keys(live) // an invalid key is already reported
		}
		for _, l := range all {
			if slices.ContainsFunc(keys, func(k string) bool { return k == l.key || beside(l.key, k) }) {
				v.fail(path+"."+key, "this key is the lock of %s, %q, or belongs to that lock; rename one of the two", l.path, l.key)
			}
		}
	}
}

// beside reports whether key is one of the keys that baton keeps beside a lock.
func beside(lock, key string) bool {
	suffix, ok := strings.CutPrefix(key, stagedAs(lock)+":")
	return ok && (strings.HasPrefix(suffix, "job:") ||
		slices.Contains([]string{"term", "quarantine", "nodes", "control", "events", "wake", "fence"}, suffix))
}
