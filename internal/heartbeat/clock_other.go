//go:build !linux

package heartbeat

import "time"

// Boottime on other systems reads Go's monotonic clock, which may stop during suspend. baton runs on Linux; this lets its code compile
// on other systems.
func Boottime() Instant { return Instant(time.Since(processStart)) }

var processStart = time.Now()
