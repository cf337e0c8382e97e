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

// Options configures the demo.
type Options struct {
	// Program is the path of the baton binary that the nodes run.
	Program string
	// Environ is the environment of the nodes. The demo skips variables that would configure the nodes.
	Environ []string
	// TempDir is the directory in which the run's directory is made.
	TempDir string

	Scene    string        // one of Scenes; "" means the first one
	Redis    string        // URL of a Redis; "" means the scene's own Redis
	Database string        // DSN of a PostgreSQL or MariaDB; "" means a SQLite file
	Duration time.Duration // duration of the traffic; 0 means until the context ends
	Chaos    time.Duration // time between faults of the leader; 0 means no faults
	Seed     uint64        // seed of traffic and faults; 0 means any seed
	Rate     int           // changes per second; 0 means DefaultRate
	Keep     bool          // do not remove the run's directory
	Picture  string        // file for an SVG of the run; "" means no picture
	NoNaive  bool          // do not run the naive program

	// Screen is the terminal that shows the live view; nil means no live view.
	Screen *Screen
	// Keys delivers the keys that are pressed on that terminal, one byte each; nil means no keys.
	Keys io.Reader
	// Log gets the events, one line each, if there is no Screen.
	Log io.Writer
}

// Screen is the terminal on which the demo draws.
type Screen struct {
	io.Writer
	// Size returns the present width and height.
	Size func() (width, height int)
	// Color says whether the terminal shows colours.
	Color bool
}

const (
	// DefaultRate is the number of changes per second without --rate.
	DefaultRate = 2000
	maxRate     = 20_000
	minChaos    = 100 * time.Millisecond

	// ttl is the lease of the nodes. It is short for a human who watches, and long enough for a busy machine.
	ttl = 2 * time.Second
)

// Check sets default values and rejects values that make no sense. The text of its errors must not contain a password.
func (o *Options) Check() error {
	if o.Duration < 0 || o.Chaos < 0 {
		return errors.New("--duration and --chaos cannot be negative")
	}
	if o.Chaos > 0 && o.Chaos < minChaos {
		return fmt.Errorf("--chaos %v is too short; the shortest interval is %v", o.Chaos, minChaos)
	}
	if _, err := sceneOf(o.Scene); err != nil {
		return err
	}
	if o.Rate == 0 {
		o.Rate = DefaultRate
	}
	if o.Rate < 0 || o.Rate > maxRate {
		return fmt.Errorf("--rate %d: write 1 to %d changes a second", o.Rate, maxRate)
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64N(1_000_000) + 1
	}
	if o.Redis != "" {
		if u, err := url.Parse(o.Redis); err != nil || (u.Scheme != "redis" && u.Scheme != "rediss") || u.Host == "" {
			return errors.New("--redis: write redis://host:port/db or rediss://host:port/db")
		}
	}
	if o.Database != "" && databaseOf(o.Database) == "" {
		return errors.New("--database: write postgres://user:password@host:5432/database or user:password@tcp(host:3306)/database")
	}
	return nil
}

// databaseOf returns the name of the driver for a DSN, which it recognises by the DSN's form. It returns "" if the driver is unknown.
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
