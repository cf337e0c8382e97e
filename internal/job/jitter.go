package job

import (
	"hash/fnv"
	"math/bits"
	"time"
)

// Offset is how long after its slots a job of this name starts: a part of jitter in
// whole milliseconds, less than it, that every node computes alike and that stays the
// same over restarts. Names spread evenly over it.
func Offset(name string, jitter time.Duration) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // a hash takes everything
	// FNV alone leaves names that differ in their last letter close together.
	mixed := h.Sum64()
	mixed = (mixed ^ mixed>>32) * 0x9e3779b97f4a7c15
	part, _ := bits.Mul64(mixed, uint64(max(0, jitter.Milliseconds())))
	return time.Duration(part) * time.Millisecond
}
