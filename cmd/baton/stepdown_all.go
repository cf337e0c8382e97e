package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

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
func stepDownAll(cmd *cobra.Command, e env, out output, to, reason string, wait time.Duration) error {
	if c, err := server(cmd, e); c != nil || err != nil {
		return errors.Join(err, usageError(errors.New("--all-locks asks Redis: it does not go with --server")))
	}
	c, err := loadConfig(cmd, e)
	if err != nil {
		return err
	}
	var all []lockHandover
	var errs []error
	vacant := 0
	for _, key := range locksOf(c) {
		h, err := stepDownFrom(cmd.Context(), c, key, to, reason, wait)
		done := lockHandover{Lock: key, Handover: h}
		if errors.Is(err, daemon.ErrNoLeader) {
			vacant++
		}
		if err != nil {
			done.Error = err.Error()
			errs = append(errs, fmt.Errorf("lock %q: %w", key, err))
		}
		all = append(all, done)
	}
	err = errors.Join(errs...)
	if vacant == len(all) {
		err = &exitError{exitNoLeader, err}
	}
	return errors.Join(err, out.print(e.stdout, all, func(w io.Writer) error { return printHandovers(w, all) }))
}

func stepDownFrom(ctx context.Context, c config.Config, key, to, reason string, wait time.Duration) (daemon.Handover, error) {
	c.Election.LockKey = key
	r, err := daemon.Dial(c)
	if err != nil {
		return daemon.Handover{}, err
	}
	h, err := r.StepDown(ctx, to, reason, wait)
	return h, errors.Join(err, r.Close())
}

func printHandovers(w io.Writer, all []lockHandover) error {
	for _, h := range all {
		var err error
		switch {
		case h.From == "":
			continue // the error says why
		case h.To == "":
			err = say(w, "%s: %s was asked to step down\n", h.Lock, h.From)
		default:
			err = say(w, "%s: %s leads after %s: epoch %d, %d ms after the order\n", h.Lock, h.To, h.From, h.Epoch, h.TookMS)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
