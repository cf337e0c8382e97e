package redisconn

import (
	"fmt"
	"slices"
	"strings"
)

// slotCount is the number of slots of every Redis Cluster.
const slotCount = 16384

// Slot is the slot of a key: CRC-16 (XMODEM) of its hash tag, or of all of it.
func Slot(key string) int {
	if tag, ok := HashTag(key); ok {
		key = tag
	}
	// Half bytes of the polynomial 0x1021: this runs for every row's key.
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

// CheckKey refuses a key that no other key could share a slot with: an empty one, and one with a '}' that closes no hash tag.
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

// SlotPrefix returns a prefix that puts every key made with it into key's slot.
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

// OwnSlots reads the entry of the answering node from the reply of CLUSTER NODES: its id, the epoch of its configuration, which grows
// when it gets slots, and the slots; and whether one of them is being moved.
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
