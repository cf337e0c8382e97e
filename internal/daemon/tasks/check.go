package tasks

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"baton/internal/config"
	"baton/internal/job/schedule"
	"baton/internal/redisconn"
)

// Checks returns the checks of configuration values that other packages define.
func Checks() config.Checks {
	return config.Checks{
		Schedule: func(spec, timeZone string) error {
			loc, err := time.LoadLocation(timeZone)
			if err != nil {
				return nil //nolint:nilerr // reported with the time zone
			}
			_, err = schedule.Parse(spec, loc)
			return err
		},
		Interval: shortestInterval,
		Key:      redisconn.CheckKey,
		Flush:    checkFlush,
	}
}

// checkFlush returns the mistake in the settings of a flush, if the mistake can be found without reading the database.
func checkFlush(r config.Redis, f config.Flush) error {
	if f.From.Changed != "" {
		if err := redisconn.CheckKey(f.From.Changed); err != nil {
			return fmt.Errorf("from.changed: %w", err)
		}
		if strings.ContainsAny(f.From.Changed, "<>") {
			return fmt.Errorf("from.changed: %q has a placeholder, but one set holds all changed ids: write the name without a placeholder",
				f.From.Changed)
		}
		if strings.ContainsAny(f.From.Changed, "[]*") {
			return fmt.Errorf("from.changed: %q looks like several sets, but baton reads it as one name: write one set, and "+
				"make a job for each set",
				f.From.Changed)
		}
	}
	c, err := Flush(config.Job{Flush: f}, nil) // no source is opened from it
	if err != nil {
		return err
	}
	if len(r.Cluster) > 0 {
		source, err := Source(config.Job{Flush: f})
		if err := errors.Join(err, source.CheckCluster()); err != nil {
			return err
		}
	}
	return c.Mapping.Check(c.Inputs, c.Create)
}

// shortestInterval returns the shortest time between two slots, or 0 if there are no slots.
func shortestInterval(spec, timeZone string) time.Duration {
	s, err := schedule.ParseIn(spec, timeZone)
	if err != nil {
		return 0
	}
	return schedule.Interval(s)
}
