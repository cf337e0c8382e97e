package config

import "slices"

// LockKeys are the locks that a node contends for: its own, and those of jobs that
// have another one, as the configuration has them.
func (c Config) LockKeys() []string {
	keys := []string{c.Election.LockKey}
	for _, j := range c.Jobs {
		if j.Lock != "" && !slices.Contains(keys, j.Lock) {
			keys = append(keys, j.Lock)
		}
	}
	return keys
}
