package lockcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/redisconn"
	"baton/internal/redislock"
)

// ErrNotHeld is the answer to breaking a lock that nobody holds.
var ErrNotHeld = redislock.ErrNotHeld

// State is a lock that somebody holds.
type State struct {
	Name    string    `json:"name"`
	NodeID  string    `json:"node_id,omitempty"` // "" of a foreign client
	Owner   string    `json:"owner"`
	Epoch   int64     `json:"epoch,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Foreign bool      `json:"foreign"`
	// LeaseLeftMS is how long the lock lives unless it is renewed; negative without an expiry.
	LeaseLeftMS int64 `json:"lease_left_ms"`
}

// lookers is how many locks are looked at at once.
const lookers = 8

// List lists the locks that `baton lock` has taken lately and somebody holds, in
// the order of their names.
func List(ctx context.Context, c config.Config) (_ []State, err error) {
	place, err := site.OpenPlace(c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, place.Close()) }()
	names, err := place.Noted(ctx)
	if err != nil {
		return nil, err
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	held, problems, queue := []State{}, []error(nil), make(chan string)
	for range lookers {
		wg.Go(func() {
			for name := range queue {
				state, ok, err := stateOf(ctx, place, name)
				mu.Lock()
				if ok {
					held = append(held, state)
				}
				if err != nil {
					problems = append(problems, err)
				}
				mu.Unlock()
			}
		})
	}
	for name := range names {
		queue <- name
	}
	close(queue)
	wg.Wait()
	slices.SortFunc(held, func(a, b State) int { return strings.Compare(a.Name, b.Name) })
	return held, errors.Join(problems...)
}

// stateOf is a lock that is held; false if it is not.
func stateOf(ctx context.Context, p *site.Place, name string) (State, bool, error) {
	picture, err := p.Picture(ctx, name)
	if err != nil || picture.Owner == "" {
		return State{}, false, err
	}
	s := State{Name: name, Owner: picture.Owner, LeaseLeftMS: picture.Left.Milliseconds(), Foreign: picture.Leader == ""}
	if !s.Foreign {
		s.NodeID, s.Epoch, s.Since = picture.Leader, picture.Epoch, picture.Since
	}
	return s, true, nil
}

// Broken tells whom a lock was taken from.
type Broken struct {
	Name   string `json:"name"`
	Owner  string `json:"owner"`
	NodeID string `json:"node_id,omitempty"` // "" of a foreign client
	Epoch  int64  `json:"epoch,omitempty"`
	// FreeInMS is until when nobody can have it, because its holder may trust it.
	FreeInMS int64 `json:"free_in_ms"`
}

// Break takes a lock away from whoever holds it, and tells the history who has
// asked for it and why. ErrNotHeld if nobody holds it.
func Break(ctx context.Context, c config.Config, name, reason string) (_ Broken, err error) {
	b := Broken{Name: name}
	if err := redisconn.CheckKey(name); err != nil {
		return b, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	place, err := site.OpenPlace(c)
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, place.Close()) }()
	broken, err := place.BreakUp(ctx, name, reason)
	if err == nil && broken.Owner == "" { // it was free, and redis has forgotten an epoch
		err = ErrNotHeld
	}
	if err != nil {
		return b, fmt.Errorf("lock %q: %w", name, err)
	}
	b.Owner, b.NodeID, b.Epoch, b.FreeInMS = broken.Owner, broken.NodeID, broken.Epoch, broken.Left.Milliseconds()
	return b, nil
}
