package config

import (
	"fmt"
	"slices"
	"strings"
)

// namedLock is a lock and the setting that it comes from.
type namedLock struct{ key, path string }

// locks makes sure that all locks differ, that no lock has the same keys beside it as another, and that no job flushes a lock: that would
// remove it.
func (v *validator) locks() {
	all := []namedLock{{v.Election.LockKey, "election.lock_key"}}
	for i, j := range v.Jobs {
		if slices.ContainsFunc(all, func(l namedLock) bool { return l.key == j.Lock }) {
			continue // jobs may share one
		}
		at := fmt.Sprintf("jobs[%d].lock", i)
		v.lockKey(at, j.Lock)
		for _, l := range all {
			switch {
			case stagedAs(l.key) == stagedAs(j.Lock):
				v.fail(at, "the keys beside it have the same names as beside %q, %s; write both alike, "+
					"or name it otherwise", l.key, l.path)
			case beside(l.key, j.Lock):
				v.fail(at, "%q is kept beside %q, %s; name it otherwise", j.Lock, l.key, l.path)
			case beside(j.Lock, l.key):
				v.fail(at, "%q, %s, is kept beside it; name it otherwise", l.key, l.path)
			}
		}
		all = append(all, namedLock{j.Lock, at})
	}
	for i, j := range v.Jobs {
		v.unlocked(fmt.Sprintf("jobs[%d].flush.from", i), j.Flush.From, all)
	}
}

// unlocked refuses to flush a lock, or a key that baton keeps beside it.
func (v *validator) unlocked(path string, f From, all []namedLock) {
	for key, live := range map[string]string{"key": f.Key, "changed": f.Changed} {
		keys := []string{live}
		if key == "key" && !f.Kind().Keyed() {
			keys, _ = f.Kind().Keys(live) // a bad one is reported already
		}
		for _, l := range all {
			if slices.ContainsFunc(keys, func(k string) bool { return k == l.key || beside(l.key, k) }) {
				v.fail(path+"."+key, "it is the lock of %s, %q, or is kept beside it; name one of them otherwise", l.path, l.key)
			}
		}
	}
}

// beside reports whether key is one that baton keeps beside a lock.
func beside(lock, key string) bool {
	suffix, ok := strings.CutPrefix(key, stagedAs(lock)+":")
	return ok && (strings.HasPrefix(suffix, "job:") ||
		slices.Contains([]string{"term", "quarantine", "nodes", "control", "events", "wake", "fence"}, suffix))
}
