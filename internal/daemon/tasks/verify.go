package tasks

import (
	"context"
	"fmt"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/flush"
	"baton/internal/flush/source/existing"
	"baton/internal/flush/source/spec"
	"baton/internal/flush/verify"
	"baton/internal/redisconn"
)

// CheckKeys returns nil if the job has keys that can be marked or compared. Otherwise it returns the reason why the job has no such keys.
func CheckKeys(j config.Job) error {
	if j.IsCommand() {
		return fmt.Errorf("job %q cannot be verified: it runs a command, and only flush jobs have keys and rows to compare", j.Name)
	}
	if err := existing.Check(j.Flush.From.Kind()); err != nil {
		return fmt.Errorf("job %q: %w", j.Name, err)
	}
	return nil
}

// Comparable returns the names of the jobs whose keys can be compared with their tables.
func Comparable(c config.Config) (names []string) {
	for _, j := range c.Jobs {
		if CheckKeys(j) == nil {
			names = append(names, j.Name)
		}
	}
	return names
}

// Captures returns the names of the jobs that follow the replication stream of a store.
func Captures(c config.Config) (names []string) {
	for _, j := range c.Jobs {
		if isCapture(j) {
			names = append(names, j.Name)
		}
	}
	return names
}

// Adopts reports whether a job asks before it changes or deletes rows that it never wrote.
func Adopts(j config.Job) bool { return !j.IsCommand() && j.Flush.From.Kind().Takes(adopts) }

// AdoptingTypes returns the types of the jobs that ask before they change or delete rows that they never wrote.
func AdoptingTypes() []string { return spec.TypesTaking(adopts) }

// Keys returns the source that lists a job's keys and reads the given inputs of their records. It does not connect.
func Keys(j config.Job, store *redisconn.Store, inputs []string) (verify.Source, error) {
	if err := CheckKeys(j); err != nil {
		return nil, err
	}
	described, err := Source(j)
	if err != nil {
		return nil, err
	}
	sources, err := described.Open(store, nil)
	if err != nil {
		return nil, err
	}
	return existing.Open(store, options(j), inputs, sources[0], site.NewID)
}

// Checker returns the Checker that compares the keys of a job with its table. It reads the database's catalogue.
func Checker(ctx context.Context, j config.Job, store *redisconn.Store, sink flush.Sink, o verify.Options) (*verify.Checker, error) {
	c, err := Flush(j, store)
	if err != nil {
		return nil, err
	}
	c.Sink = sink
	return verify.New(ctx, c, func(inputs []string) (verify.Source, error) { return Keys(j, store, inputs) }, o)
}
