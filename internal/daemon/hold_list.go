package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"baton/internal/config"
	"baton/internal/redisstore"
)

// ErrNotHeld is the answer to breaking a lock that nobody holds.
var ErrNotHeld = redisstore.ErrNotHeld

// LockState is a lock that somebody holds.
type LockState struct {
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

// Locks lists the locks that `baton lock` has taken lately and somebody holds, in
// the order of their names.
func Locks(ctx context.Context, c config.Config) (_ []LockState, err error) {
	place, err := openLockPlace(c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, place.close()) }()
	names, err := place.noted(ctx)
	if err != nil {
		return nil, err
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	held, problems, queue := []LockState{}, []error(nil), make(chan string)
	for range lookers {
		wg.Go(func() {
			for name := range queue {
				state, ok, err := place.state(ctx, name)
				mu.Lock()
				if ok {
					held = append(held, state)
				}
				problems = append(problems, err)
				mu.Unlock()
			}
		})
	}
	for _, name := range names {
		queue <- name
	}
	close(queue)
	wg.Wait()
	slices.SortFunc(held, func(a, b LockState) int { return strings.Compare(a.Name, b.Name) })
	return held, errors.Join(problems...)
}

// noted is the list of names that are, or were lately, held. One of several stores
// that does not answer is done without.
func (p lockPlace) noted(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	var names []string
	var problems []error
	for _, s := range p.stores {
		some, err := s.NotedLocks(ctx)
		names, problems = append(names, some...), append(problems, err)
	}
	slices.Sort(names)
	if err := errors.Join(problems...); err != nil && len(names) == 0 {
		return nil, err
	}
	return slices.Compact(names), nil
}

func (p lockPlace) state(ctx context.Context, name string) (LockState, bool, error) {
	picture, err := p.picture(ctx, name)
	if err != nil || picture.Owner == "" {
		return LockState{}, false, err
	}
	s := LockState{Name: name, Owner: picture.Owner, LeaseLeftMS: picture.Left.Milliseconds(), Foreign: picture.Leader == ""}
	if !s.Foreign {
		s.NodeID, s.Epoch, s.Since = picture.Leader, picture.Epoch, picture.Since
	}
	return s, true, nil
}

// BrokenLock tells whom a lock was taken from.
type BrokenLock struct {
	Name   string `json:"name"`
	Owner  string `json:"owner"`
	NodeID string `json:"node_id,omitempty"` // "" of a foreign client
	Epoch  int64  `json:"epoch,omitempty"`
	// FreeInMS is until when nobody can have it, because its holder may trust it.
	FreeInMS int64 `json:"free_in_ms"`
}

// BreakLock takes a lock away from whoever holds it, and tells the history who has
// asked for it and why. ErrNotHeld if nobody holds it.
func BreakLock(ctx context.Context, c config.Config, name, reason string) (_ BrokenLock, err error) {
	b := BrokenLock{Name: name}
	if err := redisstore.CheckKey(name); err != nil {
		return b, fmt.Errorf("%w: %w", ErrHoldUsage, err)
	}
	place, err := openLockPlace(c)
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, place.close()) }()
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	free, problems := 0, []error(nil)
	for _, s := range place.stores {
		broken, err := place.election(s, name).Break(ctx, reason)
		switch {
		case errors.Is(err, ErrNotHeld):
			free++
		case err != nil:
			problems = append(problems, err)
		default:
			b.Owner, b.NodeID, b.Epoch = broken.Owner, broken.NodeID, broken.Epoch
			b.FreeInMS = max(b.FreeInMS, broken.Left.Milliseconds())
		}
	}
	switch {
	case len(problems) > 0 && len(problems) > (len(place.stores)-1)/2:
		return b, errors.Join(problems...)
	case b.Owner == "" && free > 0:
		return b, fmt.Errorf("lock %q: %w", name, ErrNotHeld)
	}
	return b, nil
}
