package config

import "slices"

// LockKeys returns the keys of the locks that a node campaigns for: its own lock and the locks of single jobs, in the order of the
// configuration.
func (c Config) LockKeys() []string {
	keys := []string{c.Election.LockKey}
	for _, j := range c.Jobs {
		if j.Lock != "" && !slices.Contains(keys, j.Lock) {
			keys = append(keys, j.Lock)
		}
	}
	return keys
}
