package heartbeat

import "time"

// Instant is a reading of a clock that never steps and continues during suspend. The origin is arbitrary, so only differences between
// instants have a meaning.
type Instant time.Duration

// Add returns the instant d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the time from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

// Clock reads the time. Use [Boottime]; tests in a synctest bubble pass a clock that follows the bubble.
type Clock func() Instant
