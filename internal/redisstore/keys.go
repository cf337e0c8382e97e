package redisstore

import (
	"fmt"
	"strings"
)

// keys are the names of everything that belongs to one election. All of them
// hash to the slot of the lock key, so that one script may touch several.
//
// With lock key K: if K has a hash tag of its own ("a{x}b") the other keys are
// K followed by their suffix ("a{x}b:term"), which keeps the tag; else K itself
// becomes the tag ("{baton}:term").
type keys struct {
	lockKey string
	prefix  string
}

func newKeys(lockKey string) keys { return keys{lockKey: lockKey, prefix: slotPrefix(lockKey)} }

func (k keys) lock() string                { return k.lockKey }
func (k keys) term() string                { return k.prefix + ":term" }
func (k keys) quarantine() string          { return k.prefix + ":quarantine" }
func (k keys) nodes() string               { return k.prefix + ":nodes" }
func (k keys) control() string             { return k.prefix + ":control" }
func (k keys) events() string              { return k.prefix + ":events" }
func (k keys) samples() string             { return k.prefix + ":samples" }
func (k keys) wake() string                { return k.prefix + ":wake" }
func (k keys) priority(node string) string { return "priority:" + node }  // a field of control
func (k keys) aside(node string) string    { return "aside:" + node }     // too
func (k keys) request(job string) string   { return "run:" + job }        // too
func (k keys) cancel(job string) string    { return "cancel:" + job }     // too
func (k keys) fence() string               { return k.prefix + ":fence" } // of the ledger
func (k keys) job(name string) string      { return k.prefix + ":job:" + name }
func (k keys) runs(name string) string     { return k.job(name) + ":runs" }

// CheckKey refuses a key beside which baton could not place keys of its own in
// the same slot: an empty one, and one with a '}' that closes no hash tag.
func CheckKey(key string) error {
	if key == "" {
		return fmt.Errorf("redis key is empty: give it a name")
	}
	if _, ok := hashTag(key); !ok && strings.Contains(key, "}") {
		return fmt.Errorf("redis key %q has a %q without a hash tag, so no second key can share its slot: rename it, or give it a {tag}", key, "}")
	}
	return nil
}

// slotPrefix returns a prefix that puts every key made with it into key's slot.
func slotPrefix(key string) string {
	if _, ok := hashTag(key); ok {
		return key
	}
	return "{" + key + "}"
}

// hashTag returns the part of key that Redis Cluster hashes, if key names one:
// what stands between the first '{' and the next '}', unless that is nothing.
func hashTag(key string) (string, bool) {
	_, rest, ok := strings.Cut(key, "{")
	if !ok {
		return "", false
	}
	tag, _, ok := strings.Cut(rest, "}")
	return tag, ok && tag != ""
}
