package demo

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// Options say what the demo runs on, and for how long.
type Options struct {
	// Program is the baton binary that the nodes are made of.
	Program string
	// Environ is the environment of the nodes; what would configure them is left out.
	Environ []string
	// TempDir is where the run's directory is made.
	TempDir string

	Redis    string        // URL of a Redis; "" for the embedded one
	Database string        // DSN of a PostgreSQL or MariaDB; "" for a SQLite file
	Duration time.Duration // of the traffic; 0: until the context ends
	Chaos    time.Duration // between faults of the leader; 0: none
	Seed     uint64        // of traffic and faults; 0: any
	Rate     int           // changes a second; 0: DefaultRate
	Keep     bool          // the run's directory stays

	// Screen is the terminal to show the live view on; nil for none.
	Screen *Screen
	// Log takes what happens, a line each, where there is no Screen.
	Log io.Writer
}

// Screen is a terminal.
type Screen struct {
	io.Writer
	// Size is its current width and height.
	Size func() (width, height int)
	// Color says whether it shows colours.
	Color bool
}

const (
	// DefaultRate is the number of changes a second, without --rate.
	DefaultRate = 2000
	maxRate     = 20_000
	minChaos    = 100 * time.Millisecond

	// ttl is the lease of the nodes: as short as a watching human likes, and long
	// enough for a busy machine.
	ttl = 2 * time.Second
)

// check refuses what cannot be meant.
func (o *Options) check() error {
	if o.Duration < 0 || o.Chaos < 0 {
		return errors.New("--duration and --chaos cannot be negative")
	}
	if o.Chaos > 0 && o.Chaos < minChaos {
		return fmt.Errorf("--chaos %v is too often; at least %v", o.Chaos, minChaos)
	}
	if o.Rate == 0 {
		o.Rate = DefaultRate
	}
	if o.Rate < 0 || o.Rate > maxRate {
		return fmt.Errorf("--rate %d: want 1 to %d changes a second", o.Rate, maxRate)
	}
	return nil
}
