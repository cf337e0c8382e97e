package heartbeat

import "time"

// Instant is a reading of a clock that never steps and goes on in suspend, since
// an arbitrary origin. Only differences mean something.
type Instant time.Duration

// Add returns the instant d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the time from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

// Clock reads the time. [Boottime] is the one to use; tests in a synctest bubble
// pass one that follows the bubble.
type Clock func() Instant
