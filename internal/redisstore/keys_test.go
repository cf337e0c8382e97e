package redisstore

import (
	"strings"
	"testing"
)

// slotOf is Redis Cluster's own rule, from its specification: CRC16 (XMODEM) of
// the hash tag, or of the whole key.
func slotOf(key string) uint16 {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			carry := crc & 0x8000
			crc <<= 1
			if carry != 0 {
				crc ^= 0x1021
			}
		}
	}
	return crc % 16384
}

func TestKeysOfAnElectionShareASlot(t *testing.T) {
	if got := slotOf("123456789"); got != 12739 {
		t.Fatalf("slot of the specification's example: %d", got)
	}
	for _, c := range []struct{ lock, term string }{
		{"baton", "{baton}:term"},
		{"a:b c", "{a:b c}:term"},
		{"{x}", "{x}:term"},
		{"a{x}b", "a{x}b:term"},
		{"a{x}b{y}", "a{x}b{y}:term"},
		{"a{b", "{a{b}:term"},
	} {
		k := newKeys(c.lock)
		if err := CheckKey(c.lock); err != nil {
			t.Errorf("%q: %v", c.lock, err)
		}
		if k.term() != c.term {
			t.Errorf("%q: term key %q, want %q", c.lock, k.term(), c.term)
		}
		names := map[string]bool{}
		for _, key := range []string{k.lock(), k.term(), k.quarantine(), k.nodes(), k.control(), k.events(), k.job("j"), k.runs("j"), k.samples(), k.wake()} {
			if slotOf(key) != slotOf(c.lock) {
				t.Errorf("%q is in slot %d, the lock %q in %d", key, slotOf(key), c.lock, slotOf(c.lock))
			}
			if names[key] {
				t.Errorf("%q has two uses", key)
			}
			names[key] = true
		}
	}
	for _, key := range []string{"", "a}b", "a{}b", "a}b{c"} {
		if CheckKey(key) == nil {
			t.Errorf("%q was accepted", key)
		}
	}
}
