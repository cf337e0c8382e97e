//go:build !linux

package heartbeat

import "time"

// Boottime elsewhere follows Go's monotonic clock, which may stop in suspend.
// baton is run on Linux; this lets its code be worked on anywhere.
func Boottime() Instant { return Instant(time.Since(processStart)) }

var processStart = time.Now()
