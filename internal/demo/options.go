package demo

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"
)

// Options configure the demo.
type Options struct {
	// Program is the baton binary that the nodes are made of.
	Program string
	// Environ is the environment of the nodes; variables that would configure them are left out.
	Environ []string
	// TempDir is where the run's directory is made.
	TempDir string

	Scene    string        // one of Scenes; "" for the first
	Redis    string        // URL of a Redis; "" for the scene's own
	Database string        // DSN of a PostgreSQL or MariaDB; "" for a SQLite file
	Duration time.Duration // of the traffic; 0: until the context ends
	Chaos    time.Duration // between faults of the leader; 0: none
	Seed     uint64        // of traffic and faults; 0: any
	Rate     int           // changes a second; 0: DefaultRate
	Keep     bool          // the run's directory stays
	Picture  string        // the file for an SVG of the run; "": no picture
	NoNaive  bool          // the naive program does not run beside

	// Screen is the terminal to show the live view on; nil for none.
	Screen *Screen
	// Keys are the keys pressed on that terminal, a byte each; nil: no keys.
	Keys io.Reader
	// Log gets the events, a line each, if there is no Screen.
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

	// ttl is the lease of the nodes: short for a human who watches, and long enough for a busy machine.
	ttl = 2 * time.Second
)

// Check fills in defaults and refuses values without a meaning. No text of its errors may hold a password.
func (o *Options) Check() error {
	if o.Duration < 0 || o.Chaos < 0 {
		return errors.New("--duration and --chaos cannot be negative")
	}
	if o.Chaos > 0 && o.Chaos < minChaos {
		return fmt.Errorf("--chaos %v is too often; at least %v", o.Chaos, minChaos)
	}
	if _, err := sceneOf(o.Scene); err != nil {
		return err
	}
	if o.Rate == 0 {
		o.Rate = DefaultRate
	}
	if o.Rate < 0 || o.Rate > maxRate {
		return fmt.Errorf("--rate %d: want 1 to %d changes a second", o.Rate, maxRate)
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64N(1_000_000) + 1
	}
	if o.Redis != "" {
		if u, err := url.Parse(o.Redis); err != nil || (u.Scheme != "redis" && u.Scheme != "rediss") || u.Host == "" {
			return errors.New("--redis: want redis://host:port/db or rediss://host:port/db")
		}
	}
	if o.Database != "" && databaseOf(o.Database) == "" {
		return errors.New("--database: want postgres://user:password@host:5432/database or user:password@tcp(host:3306)/database")
	}
	return nil
}

// databaseOf is the driver that a DSN is for, by its form; "" if unknown.
func databaseOf(dsn string) string {
	scheme, _, _ := strings.Cut(dsn, "://")
	switch {
	case scheme == "postgres" || scheme == "postgresql":
		return "postgres"
	case scheme == "mysql" || scheme == "mariadb" || strings.Contains(dsn, ")/"):
		return "mysql"
	}
	return ""
}
