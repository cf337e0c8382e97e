package operate

import (
	"context"
	"errors"
	"fmt"
)

// LockHandover is the outcome of a step-down from one of several locks.
type LockHandover struct {
	Lock string `json:"lock"`
	Outcome
	Error string `json:"error,omitzero"`
}

// StepDownAll gives an order to step down for every lock of the configuration. It gives the orders one after the other, so that it knows
// the new leader of one lock before the next order. It returns [ErrNoLeader] if no node leads under any of the locks.
func StepDownAll(ctx context.Context, r Operator, o Order) ([]LockHandover, error) {
	s, err := r.Election(ctx)
	if err != nil {
		return nil, err
	}
	keys := []string{s.LockKey}
	for _, l := range s.Locks {
		keys = append(keys, l.Key)
	}
	all := make([]LockHandover, len(keys))
	var errs []error
	vacant := 0
	for i, key := range keys {
		o.Lock = key
		done, err := r.Do(ctx, o)
		all[i] = LockHandover{Lock: key, Outcome: done}
		if err == nil {
			continue
		}
		all[i].Error = err.Error()
		if errors.Is(err, ErrNoLeader) {
			vacant++
			err = errors.New(err.Error())
		}
		errs = append(errs, fmt.Errorf("lock %q: %w", key, err))
	}
	err = errors.Join(errs...)
	if vacant == len(all) {
		err = As(err, ErrNoLeader)
	}
	return all, err
}
