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

// Checks are the rules for a configuration's values that other packages own.
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

// checkFlush returns the mistake in a flush that shows without looking into its database.
func checkFlush(r config.Redis, f config.Flush) error {
	if f.From.Changed != "" {
		if err := redisconn.CheckKey(f.From.Changed); err != nil {
			return fmt.Errorf("from.changed: %w", err)
		}
		if strings.ContainsAny(f.From.Changed, "<>") {
			return fmt.Errorf("from.changed: %q has a placeholder, but it is one set of all changed ids: name it without", f.From.Changed)
		}
		if strings.ContainsAny(f.From.Changed, "[]*") {
			return fmt.Errorf("from.changed: %q looks like several sets, but is taken literally: name one set, in a job for each",
				f.From.Changed)
		}
	}
	c, err := Flush(config.Job{Flush: f}, nil) // no source is made of it
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

// shortestInterval is the least time between two slots; 0: there are none.
func shortestInterval(spec, timeZone string) time.Duration {
	s, err := schedule.ParseIn(spec, timeZone)
	if err != nil {
		return 0
	}
	return schedule.Interval(s)
}
