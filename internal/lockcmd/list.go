package lockcmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/redisconn"
	"baton/internal/redislock"
	"baton/internal/text"
)

// ErrNotHeld is the error of [Break] for a lock that is free.
var ErrNotHeld = redislock.ErrNotHeld

// State is the state of a held lock.
type State struct {
	Name    string    `json:"name"`
	NodeID  string    `json:"node_id,omitempty"` // "" for a foreign client
	Owner   string    `json:"owner"`
	Epoch   int64     `json:"epoch,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Foreign bool      `json:"foreign"`
	// Forbidden means that this Redis user may not read the lock: State has only the lock's name.
	Forbidden bool `json:"forbidden,omitzero"`
	// LeaseLeft is the time until the lock expires unless it is renewed. It is negative for a lock without an expiry.
	LeaseLeft text.Seconds `json:"lease_left_seconds"`
}

// List lists the held locks of this Redis, including the locks of daemons and libraries, in the order of their names. If some locks
// cannot be read, it lists the others and returns an error.
func List(ctx context.Context, c config.Config) (held []State, err error) {
	locks, err := site.OpenLocks(c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, locks.Close()) }()
	names, err := locks.Noted(ctx)
	if err != nil {
		return nil, err
	}
	states, unread, err := locks.States(ctx, slices.Collect(maps.Keys(names)))
	held = []State{}
	for name, p := range states {
		if p.Owner != "" || p.Forbidden {
			held = append(held, stateOf(name, p))
		}
	}
	slices.SortFunc(held, func(a, b State) int { return strings.Compare(a.Name, b.Name) })
	return held, errors.Join(err, unread)
}

// stateOf returns the state of a held lock.
func stateOf(name string, p redislock.ElectionState) State {
	s := State{Name: name, Owner: p.Owner, LeaseLeft: text.Seconds(p.Left), Forbidden: p.Forbidden}
	s.Foreign = p.Leader == "" && !p.Forbidden
	if p.Leader != "" {
		s.NodeID, s.Epoch, s.Since = p.Leader, p.Epoch, p.Since
	}
	return s
}

// Broken describes the former holder of a lock that was broken.
type Broken struct {
	Name   string `json:"name"`
	Owner  string `json:"owner"`
	NodeID string `json:"node_id,omitempty"` // "" for a foreign client
	Epoch  int64  `json:"epoch,omitempty"`
	// FreeIn is the time until another client can get the lock. Until then the former holder may trust the lock.
	FreeIn text.Seconds `json:"free_in_seconds"`
}

// Break takes a lock away from its holder, and records who ordered this and why. It returns ErrNotHeld if the lock is free.
func Break(ctx context.Context, c config.Config, name, reason string) (_ Broken, err error) {
	b := Broken{Name: name}
	if err := redisconn.CheckKey(name); err != nil {
		return b, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	locks, err := site.OpenLocks(c)
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, locks.Close()) }()
	broken, err := locks.BreakUp(ctx, name, reason)
	if err == nil && broken.Owner == "" { // the lock was free, and Redis has lost an epoch
		err = ErrNotHeld
	}
	if err != nil {
		return b, fmt.Errorf("lock %q: %w", name, err)
	}
	b.Owner, b.NodeID, b.Epoch, b.FreeIn = broken.Owner, broken.NodeID, broken.Epoch, text.Seconds(broken.Left)
	return b, nil
}
