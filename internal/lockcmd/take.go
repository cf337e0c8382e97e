package lockcmd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"baton/internal/command/held"
	"baton/internal/daemon/site"
	"baton/internal/elector"
	"baton/internal/redislock"
)

// lockAttempt is a lock that is to be taken: an election of one term.
type lockAttempt struct {
	h     *lockRun
	name  string
	keys  []string
	lock  elector.Lock
	slots *elector.AnyOf    // of a semaphore
	views []*site.AskedLock // of the keys
	hints chan elector.Hint

	mu   sync.Mutex
	term *elector.Term
	why  error // it was not had so far
}

// quietly is how long a lock is held before it listens for hints about it:
// most commands are shorter.
const quietly = time.Second

func newLockAttempt(h *lockRun, w wantedLock) (*lockAttempt, error) {
	t := &lockAttempt{h: h, name: w.name, keys: w.keys, hints: make(chan elector.Hint, 16)}
	var slots []elector.Lock
	for _, key := range w.keys {
		lock, err := h.locks.Lock(key, h.o.Version)
		if err != nil {
			return nil, err
		}
		slots, t.views = append(slots, lock), append(t.views, lock)
	}
	t.lock = slots[0]
	if h.o.Slots == 0 {
		return t, nil
	}
	var err error
	t.slots, err = elector.NewAnyOf(slots)
	t.lock = t.slots
	return t, err
}

// take takes lock i and, while it holds it, those after it; when all are held, the
// command is run. It returns when whatever it has taken is given back.
func (h *lockRun) take(ctx context.Context, i int) error {
	if i == len(h.attempts) {
		h.execute(ctx)
		return nil
	}
	t := h.attempts[i]
	ctx, enough := context.WithCancelCause(ctx)
	defer enough(nil)
	var inner error
	el, err := elector.New(t.lock, func(ctx context.Context, term *elector.Term) error {
		defer enough(elector.ErrDone) // one term, whatever came of it
		t.begin(term)
		defer t.begin(nil)
		h.wg.Go(func() { h.locks.KeepNoted(ctx, t.key()) })
		inner = h.take(ctx, i+1)
		h.lost(t.name, context.Cause(ctx))
		return nil
	}, elector.Config{
		NodeID: h.config.Node.ID, Timing: site.Timing(h.config.Election), PollInterval: h.config.Election.PollInterval,
		NewOwner: site.NewID, Beat: &h.beat, Hints: t.hints, Observe: t.observe, Die: h.die,
	})
	if err != nil {
		return err
	}
	return errors.Join(el.Run(ctx), inner)
}

func (t *lockAttempt) begin(term *elector.Term) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.term = term
}

// key is the key of the lock in Redis. A semaphore has the key of its slot.
func (t *lockAttempt) key() string {
	if t.slots != nil {
		return t.keys[t.slots.Slot()-1]
	}
	return t.name
}

// held is the lock as the command finds it in its environment.
func (t *lockAttempt) held() held.Lock {
	t.mu.Lock()
	defer t.mu.Unlock()
	return held.Lock{Key: t.key(), Owner: t.term.Owner(), Epoch: t.term.Epoch()}
}

func (t *lockAttempt) untilHardStop() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.term == nil {
		return 0
	}
	return t.term.UntilHardStop()
}

// obstacle is why the lock was not had, as far as known; nil if it was.
func (t *lockAttempt) obstacle() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.why
}

func (t *lockAttempt) blocked(why error) {
	t.mu.Lock()
	t.why = why
	t.mu.Unlock()
	if t.h.o.Wait == 0 && why != nil {
		t.h.stopWaiting(errors.New("without waiting"))
	}
}

// observe turns events of the elector into messages, and ends a wait that was not
// to be one.
func (t *lockAttempt) observe(ev elector.Event) {
	h := t.h
	switch ev.Kind {
	case elector.EventStandby, elector.EventWaiting:
		why := errors.New(ev.Reason)
		if ev.Kind == elector.EventStandby {
			why = errors.New(site.HeldBy(ev))
		}
		h.hearing.Do(func() { close(h.hear) })
		h.o.Note(fmt.Sprintf("lock %q: waiting, %v", t.name, why))
		t.blocked(why)
	case elector.EventStoreLost:
		if h.o.Wait != 0 || h.hasBegun() {
			h.redisAway(t.name, ev.Err)
		}
		t.blocked(fmt.Errorf("%w: %w", ErrRedisAway, ev.Err))
	case elector.EventStoreBack:
		h.redisBack() // giving back what did not count is contact, too: the obstacle stays until another is known
	case elector.EventWon:
		t.blocked(nil)
		h.o.Note(fmt.Sprintf("lock %q: taken, epoch %d", t.name, ev.Epoch))
	case elector.EventStopping:
		h.o.Note(fmt.Sprintf("lock %q: ending, %s", t.name, ev.Reason))
	default:
		switch {
		case !ev.Kind.Ends(), ev.Kind == elector.EventLost: // there is nothing to give back
		case ev.Released:
			h.o.Note(fmt.Sprintf("lock %q: given back", t.name))
		default:
			h.o.Warn(fmt.Sprintf("lock %q could not be given back, and runs out by itself within %v: %v",
				t.name, h.config.Election.TTL, ev.Err))
		}
	}
}

// redisAway warns once, however many locks meet the same trouble.
func (h *lockRun) redisAway(name string, err error) {
	h.mu.Lock()
	away := h.away
	h.away = true
	h.mu.Unlock()
	if !away {
		h.o.Warn(fmt.Sprintf("lock %q: %v; trying again", name, err))
	}
}

func (h *lockRun) redisBack() {
	h.mu.Lock()
	away := h.away
	h.away = false
	h.mu.Unlock()
	if away {
		h.o.Warn("redis is back")
	}
}

// listen subscribes to the hints of the locks once this process waits for one, so that it learns
// of a release at once, or once it has held the locks for a while.
func (h *lockRun) listen(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-h.hear:
	case <-time.After(quietly):
	}
	var watched []redislock.Watched
	for _, t := range h.attempts {
		for _, key := range t.keys {
			watched = append(watched, redislock.Watched{LockKey: key, Hints: t.hints})
		}
	}
	h.locks.Watch(ctx, watched)
}

// leave takes this node off the lists of those who want the locks. Where Redis does
// not answer it stays on them.
func (h *lockRun) leave() {
	if h.away {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), h.config.Election.AttemptTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for _, t := range h.attempts {
		for _, v := range t.views {
			wg.Go(func() { v.LeaveIfAsked(ctx) })
		}
	}
	wg.Wait()
}

// confirmOuter checks that the locks of the command around this one are still its.
func (h *lockRun) confirmOuter(ctx context.Context) error {
	for _, w := range h.wanted {
		if w.outer == nil {
			continue
		}
		owner, err := h.ownerOf(ctx, w.outer.Key)
		if err != nil {
			return fmt.Errorf("lock %q, which the command around this one holds, cannot be checked, and was %w: %w: %w",
				w.outer.Key, ErrNotHad, ErrRedisAway, err)
		}
		if owner != w.outer.Owner {
			return fmt.Errorf("lock %q was %w: the command around this one held it (owner %s), "+
				"and in redis %s it does not any more (found owner %q)",
				w.outer.Key, ErrLockLost, w.outer.Owner, h.locks.Host(), owner)
		}
		h.o.Note(fmt.Sprintf("lock %q: held by the command around this one", w.outer.Key))
	}
	return nil
}

// ownerOf reads a lock's owner, and goes on trying as long as the wait lasts.
func (h *lockRun) ownerOf(ctx context.Context, key string) (string, error) {
	for {
		p, err := h.locks.Picture(ctx, key)
		if err == nil {
			return p.Owner, nil
		}
		if h.o.Wait == 0 || ctx.Err() != nil {
			return "", err
		}
		h.redisAway(key, err)
		select {
		case <-ctx.Done():
			return "", err
		case <-time.After(h.config.Election.TTL / 10):
		}
	}
}
