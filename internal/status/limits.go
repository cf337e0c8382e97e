package status

import "time"

// limits are what a client gets for each step.
type limits struct {
	header, read, write, idle time.Duration
	vanished                  time.Duration // to confirm anything that was sent
	connections               connectionLimits
}

func defaultLimits() limits {
	return limits{
		header: 5 * time.Second, read: 10 * time.Second, write: 15 * time.Second, idle: 30 * time.Second, vanished: 20 * time.Second,
		connections: connectionLimits{all: maxConnections, idle: maxIdle, idleOfOne: maxIdleOfOne, grace: 250 * time.Millisecond},
	}
}
