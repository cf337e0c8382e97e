package web

import "time"

// Limits contains the time limit of each step of a request, and the limits of connections.
type Limits struct {
	Header, Read, Write, Idle time.Duration
	Vanished                  time.Duration // how long the client may take to acknowledge sent data
	Connections               connectionLimits
}

// DefaultLimits returns the limits of a node.
func DefaultLimits() Limits {
	return Limits{
		Header: 5 * time.Second, Read: 10 * time.Second, Write: 15 * time.Second, Idle: 30 * time.Second, Vanished: 20 * time.Second,
		Connections: connectionLimits{all: MaxConnections, idle: MaxIdle, idleOfOne: MaxIdleOfOne, Grace: 250 * time.Millisecond},
	}
}
