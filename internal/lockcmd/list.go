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

// ErrNotHeld is the answer to breaking a lock that is free.
var ErrNotHeld = redislock.ErrNotHeld

// State is a lock that is held.
type State struct {
	Name    string    `json:"name"`
	NodeID  string    `json:"node_id,omitempty"` // "" of a foreign client
	Owner   string    `json:"owner"`
	Epoch   int64     `json:"epoch,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Foreign bool      `json:"foreign"`
	// Forbidden: this user of Redis may not read the lock. Only the name is known.
	Forbidden bool `json:"forbidden,omitzero"`
	// LeaseLeft is how long the lock lives unless it is renewed; negative without an expiry.
	LeaseLeft text.Seconds `json:"lease_left_seconds"`
}

// List lists the locks of this Redis that are held, those of daemons and libraries among them, in
// the order of their names. Where some cannot be read it lists the others, with an error.
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
	pictures, unread, err := locks.Pictures(ctx, slices.Collect(maps.Keys(names)))
	held = []State{}
	for name, p := range pictures {
		if p.Owner != "" || p.Forbidden {
			held = append(held, stateOf(name, p))
		}
	}
	slices.SortFunc(held, func(a, b State) int { return strings.Compare(a.Name, b.Name) })
	return held, errors.Join(err, unread)
}

// stateOf is a lock that is held.
func stateOf(name string, p redislock.Picture) State {
	s := State{Name: name, Owner: p.Owner, LeaseLeft: text.Seconds(p.Left), Forbidden: p.Forbidden}
	s.Foreign = p.Leader == "" && !p.Forbidden
	if p.Leader != "" {
		s.NodeID, s.Epoch, s.Since = p.Leader, p.Epoch, p.Since
	}
	return s
}

// Broken is the holder that a lock was taken from.
type Broken struct {
	Name   string `json:"name"`
	Owner  string `json:"owner"`
	NodeID string `json:"node_id,omitempty"` // "" of a foreign client
	Epoch  int64  `json:"epoch,omitempty"`
	// FreeIn is until when no client can have it, because its holder may trust it.
	FreeIn text.Seconds `json:"free_in_seconds"`
}

// Break takes a lock away from its holder, and records by whose order and
// why. ErrNotHeld if it is free.
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
	if err == nil && broken.Owner == "" { // it was free, and redis has forgotten an epoch
		err = ErrNotHeld
	}
	if err != nil {
		return b, fmt.Errorf("lock %q: %w", name, err)
	}
	b.Owner, b.NodeID, b.Epoch, b.FreeIn = broken.Owner, broken.NodeID, broken.Epoch, text.Seconds(broken.Left)
	return b, nil
}
