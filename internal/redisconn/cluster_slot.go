package redisconn

import (
	"fmt"
	"slices"
	"strings"
)

// slotCount is the number of slots of every Redis Cluster.
const slotCount = 16384

// Slot returns the slot of a key: CRC-16 (XMODEM) of its hash tag, or of the whole key if the key has no hash tag.
func Slot(key string) int {
	if tag, ok := HashTag(key); ok {
		key = tag
	}
	// The table speeds up the CRC by half bytes (polynomial 0x1021), because Slot runs for the key of every row.
	table := [16]uint16{
		0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
		0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef,
	}
	var crc uint16
	for i := range len(key) {
		crc = crc<<4 ^ table[byte(crc>>12)^key[i]>>4]
		crc = crc<<4 ^ table[byte(crc>>12)^key[i]&15]
	}
	return int(crc % slotCount)
}

// CheckKey refuses a key that cannot share its slot with other keys: an empty key, and a key with a '}' that closes no hash tag.
func CheckKey(key string) error {
	if key == "" {
		return fmt.Errorf("redis key is empty: give it a name")
	}
	if _, ok := HashTag(key); !ok && strings.Contains(key, "}") {
		return fmt.Errorf("redis key %q has a %q without a hash tag, so no second key can share its slot: rename it, or give it a {tag}",
			key, "}")
	}
	return nil
}

// SlotPrefix returns a prefix for further keys. A key that begins with this prefix is in the same slot as the given key.
func SlotPrefix(key string) string {
	if _, ok := HashTag(key); ok {
		return key
	}
	return "{" + key + "}"
}

// HashTag returns the hash tag of key, if it has one: the text between the first '{' and the
// next '}', unless it is empty.
func HashTag(key string) (string, bool) {
	_, rest, ok := strings.Cut(key, "{")
	if !ok {
		return "", false
	}
	tag, _, ok := strings.Cut(rest, "}")
	return tag, ok && tag != ""
}

// OwnSlots returns the answering node's own entry in the reply of CLUSTER NODES. The result slots contains the node's id, its
// configuration epoch and its slots. This epoch grows when the node gets slots. The result moving reports whether one of the slots
// is being moved.
func OwnSlots(nodes string) (slots string, moving bool) {
	for line := range strings.Lines(nodes) {
		f := strings.Fields(line)
		if len(f) < 8 || !slices.Contains(strings.Split(f[2], ","), "myself") {
			continue
		}
		moving = slices.ContainsFunc(f[8:], func(s string) bool { return strings.HasPrefix(s, "[") })
		return strings.Join(append([]string{f[0], f[6]}, f[8:]...), " "), moving
	}
	return "", false
}
