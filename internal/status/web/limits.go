// Package web serves HTTP to clients that hold connections, read slowly or flood: limits of
// connections and of requests at a time, deadlines, server-sent events. What is served it does not know.
package web

import "time"

// Limits are what a client gets for each step.
type Limits struct {
	Header, Read, Write, Idle time.Duration
	Vanished                  time.Duration // to confirm anything that was sent
	Connections               connectionLimits
}

// DefaultLimits are those of a node.
func DefaultLimits() Limits {
	return Limits{
		Header: 5 * time.Second, Read: 10 * time.Second, Write: 15 * time.Second, Idle: 30 * time.Second, Vanished: 20 * time.Second,
		Connections: connectionLimits{all: MaxConnections, idle: MaxIdle, idleOfOne: MaxIdleOfOne, Grace: 250 * time.Millisecond},
	}
}
