package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/operate"
)

// lockHandover is what the step-down from one of several locks came to.
type lockHandover struct {
	Lock string `json:"lock"`
	operate.Outcome
	Error string `json:"error,omitzero"`
}

// stepDownAll has the leaders hand over every lock of the configuration: one
// after the other, so that the successors of one are known before the next.
func stepDownAll(ctx context.Context, r operate.Operator, o operate.Order) ([]lockHandover, error) {
	s, err := r.Election(ctx)
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
		o.Lock = key
		done, err := r.Do(ctx, o)
		all[i] = lockHandover{Lock: key, Outcome: done}
		if errors.Is(err, operate.ErrNobodyLeads) {
			vacant++
		}
		if err != nil {
			all[i].Error = err.Error()
			errs = append(errs, fmt.Errorf("lock %q: %w", key, err))
		}
	}
	err = errors.Join(errs...)
	if vacant == len(all) {
		err = cmdline.WithCode(cmdline.ExitNoLeader, err)
	}
	return all, err
}

func printHandovers(w io.Writer, all []lockHandover) error {
	for _, h := range all {
		if h.From == "" {
			continue // the error says why
		}
		if err := show.Say(w, "%s: %s\n", h.Lock, h.Text); err != nil {
			return err
		}
	}
	return nil
}
