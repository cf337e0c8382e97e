// Package heartbeat keeps a lease alive and knows until when it may be trusted.
//
// A lease is a key in a store that expires by the store's clock, TTL after the
// store has handled our request. We cannot see that moment, but it cannot lie
// before we sent the request. So trust is counted from the sending:
//
//	s            request sent
//	H = s+TTL-Margin   hard stop: whatever still runs is killed, or the process exits
//	S = H-Drain        soft stop: start nothing, cancel what runs
//
// Between S and H the work winds down; between H and the end of the lease lies
// the margin for clocks that drift and for a scheduler that is late. Local time
// can only make us stop sooner, never later.
//
//	renewed   S and H move to those of the request that was just answered
//	unknown   no answer: S and H stay; ask again at once
//	lost      the store says that the lease is another owner's: trust ends now
//	expired   H has passed: never renew again, even if an answer arrives
//
// [Window] holds S and H, [Window.Guard] enforces them from a timer that never
// waits behind the store, and [Keep] renews. The clock is CLOCK_BOOTTIME, which
// unlike Go's monotonic clock goes on while the machine is suspended.
//
// The package needs nothing but the standard library and knows no store.
package heartbeat
