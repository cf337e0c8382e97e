// Package heartbeat keeps a lease alive and knows until when it may be trusted.
//
// A lease is a key in a store. The key expires by the store's clock, TTL after the store has handled our request. We cannot see that
// moment, but it cannot be before we sent the request. So trust counts from the moment when the request is sent:
//
//	s            request sent
//	H = s+TTL-Margin   hard stop: work that still runs is killed, or the process exits
//	S = H-Drain        soft stop: start nothing, cancel running work
//
// Between S and H the work ends. Between H and the end of the lease is the margin for clocks that drift and for a scheduler that is
// late. Local time can only make us stop earlier, never later.
//
//	renewed   S and H move to the S and H of the request that was just answered
//	unknown   no answer: S and H do not move; ask again at once
//	lost      the store says that the lease is another owner's: trust ends now
//	expired   H has passed: never renew again, even if an answer arrives
//
// [Window] holds S and H, [Window.Guard] enforces S and H from a timer that never waits for the store, and [Keep] renews the lease. The
// clock is CLOCK_BOOTTIME, which unlike Go's monotonic clock continues while the machine is suspended.
//
// The package needs only the standard library and does not depend on any store.
package heartbeat
