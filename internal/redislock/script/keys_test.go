package script

import (
	"testing"

	"baton/internal/redisconn"
)

func TestKeysOfAnElectionShareASlot(t *testing.T) {
	for _, c := range []struct{ lock, term string }{
		{"baton", "{baton}:term"},
		{"a:b c", "{a:b c}:term"},
		{"{x}", "{x}:term"},
		{"a{x}b", "a{x}b:term"},
		{"a{x}b{y}", "a{x}b{y}:term"},
		{"a{b", "{a{b}:term"},
	} {
		k := KeysOf(c.lock)
		if err := redisconn.CheckKey(c.lock); err != nil {
			t.Errorf("%q: %v", c.lock, err)
		}
		if k.Term() != c.term {
			t.Errorf("%q: term key %q, want %q", c.lock, k.Term(), c.term)
		}
		names := map[string]bool{}
		for _, key := range []string{k.Lock(), k.Term(), k.Quarantine(), k.Nodes(), k.Control(), k.Events(), k.Job("j"), k.Runs("j"),
			k.Samples(), k.Wake()} {
			if redisconn.Slot(key) != redisconn.Slot(c.lock) {
				t.Errorf("%q is in slot %d, the lock %q in %d", key, redisconn.Slot(key), c.lock, redisconn.Slot(c.lock))
			}
			if names[key] {
				t.Errorf("%q has two uses", key)
			}
			names[key] = true
		}
	}
	for _, key := range []string{"", "a}b", "a{}b", "a}b{c"} {
		if redisconn.CheckKey(key) == nil {
			t.Errorf("%q was accepted", key)
		}
	}
}
