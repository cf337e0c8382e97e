package redislock

import "strconv"

// epochOf reads an epoch; false if it is none, or beyond 2^53, where the numbers of Lua end.
func epochOf(text string) (int64, bool) {
	n, err := strconv.ParseUint(text, 10, 53)
	if err != nil {
		return 0, false
	}
	return int64(n), true
}

// farAhead is 30 days in ms: see lock_lib.lua.
const farAhead = 30 * 24 * 60 * 60 * 1000

// Plausible reports whether an epoch is at most 30 days (in ms) above the known epoch and
// Redis' clock. A higher one is a forgery or a fault.
func Plausible(epoch, known, now int64) bool { return epoch <= max(known, now)+farAhead }
