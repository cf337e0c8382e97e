package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"baton/internal/config"
	"baton/internal/daemon"
)

// lockHandover is what the step-down from one of several locks came to.
type lockHandover struct {
	Lock string `json:"lock"`
	daemon.Handover
	Error string `json:"error,omitzero"`
}

// locksOf are the elections of a configuration, the node's own first.
func locksOf(c config.Config) []string {
	keys := []string{c.Election.LockKey}
	for _, j := range c.Jobs {
		if j.Lock != "" && !slices.Contains(keys, j.Lock) {
			keys = append(keys, j.Lock)
		}
	}
	return keys
}

// stepDownAll has whoever leads hand over, of every lock of the configuration: one
// after the other, so that the successors of one are known before the next.
func stepDownAll(ctx context.Context, r daemon.Asked, to, reason string, wait time.Duration) ([]lockHandover, error) {
	s, err := r.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	keys := []string{s.LockKey}
	for _, l := range s.Locks {
		keys = append(keys, l.Key)
	}
	all := make([]lockHandover, len(keys))
	var errs []error
	vacant := 0
	for i, key := range keys {
		h, err := r.StepDownFrom(ctx, key, to, reason, wait)
		all[i] = lockHandover{Lock: key, Handover: h}
		if errors.Is(err, daemon.ErrNoLeader) {
			vacant++
		}
		if err != nil {
			all[i].Error = err.Error()
			errs = append(errs, fmt.Errorf("lock %q: %w", key, err))
		}
	}
	err = errors.Join(errs...)
	if vacant == len(all) {
		err = &exitError{exitNoLeader, err}
	}
	return all, err
}

func printHandovers(w io.Writer, all []lockHandover) error {
	for _, h := range all {
		if h.From == "" {
			continue // the error says why
		}
		if err := say(w, "%s: ", h.Lock); err != nil {
			return err
		}
		if err := printHandover(w, h.Handover); err != nil {
			return err
		}
	}
	return nil
}
