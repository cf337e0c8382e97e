package config

import "slices"

// LockKeys are the locks that a node contends for: its own, and those that jobs have of their own, as written in the configuration.
func (c Config) LockKeys() []string {
	keys := []string{c.Election.LockKey}
	for _, j := range c.Jobs {
		if j.Lock != "" && !slices.Contains(keys, j.Lock) {
			keys = append(keys, j.Lock)
		}
	}
	return keys
}
