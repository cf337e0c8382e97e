package redislock

import "strconv"

// epochOf reads an epoch. It returns false if the text is no epoch, or if the epoch is above 2^53, the limit of Lua's numbers.
func epochOf(text string) (int64, bool) {
	n, err := strconv.ParseUint(text, 10, 53)
	if err != nil {
		return 0, false
	}
	return int64(n), true
}

// farAhead is 30 days in ms. The script lock_lib.lua has the same limit.
const farAhead = 30 * 24 * 60 * 60 * 1000

// Plausible reports whether an epoch is at most 30 days (in ms) above the known epoch or Redis' clock, whichever is higher. A higher
// epoch is a forgery or a fault.
func Plausible(epoch, known, now int64) bool { return epoch <= max(known, now)+farAhead }
