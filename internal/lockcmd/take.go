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

// lockAttempt is a lock to be taken: an election of one term.
type lockAttempt struct {
	h     *lockRun
	name  string
	keys  []string
	lock  elector.Lock
	slots *elector.AnyOf    // the slots of a semaphore
	views []*site.AskedLock // of the keys
	hints chan elector.Hint

	mu   sync.Mutex
	term *elector.Term
	why  error // why the lock was not acquired so far
}

// quietly is how long locks are held before this process subscribes to messages about them. Most commands end earlier, and need no
// subscription.
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

// take takes lock i and then, while it holds lock i, the locks after lock i. When all locks are held, it runs the command. It returns
// when all taken locks are given back.
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
		defer enough(elector.ErrDone) // one term, whatever its result
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

// key returns the key of the lock in Redis. The key of a semaphore is the key of the slot that this process tries to take or holds.
func (t *lockAttempt) key() string {
	if t.slots != nil {
		return t.keys[t.slots.Slot()-1]
	}
	return t.name
}

// held returns the lock as the command finds it in its environment.
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

// obstacle returns the known reason why the lock was not taken, or nil if the lock was taken.
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

// observe turns events of the elector into messages for the user, and ends the wait if the caller asked not to wait.
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
		h.redisBack() // the answer to a release also ends an outage: the obstacle stays until another is known
	case elector.EventWon:
		t.blocked(nil)
		h.o.Note(fmt.Sprintf("lock %q: taken, epoch %d", t.name, ev.Epoch))
	case elector.EventStopping:
		h.o.Note(fmt.Sprintf("lock %q: ending, %s", t.name, ev.Reason))
	default:
		switch {
		case !ev.Kind.Ends(), ev.Kind == elector.EventLost: // there is no lock to give back
		case ev.Released:
			h.o.Note(fmt.Sprintf("lock %q: released", t.name))
		default:
			h.o.Warn(fmt.Sprintf("lock %q could not be released; its lease ends within %v: %v",
				t.name, h.config.Election.TTL, ev.Err))
		}
	}
}

// redisAway warns that Redis does not answer. If several locks have this problem, it warns only once.
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

// listen subscribes to the messages (hints) about the locks, so that this process learns at once that a lock was released. The subscription
// begins when this process waits for a lock, or when it has held the locks for a while.
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

// leave removes this node from the lists of the nodes that want the locks. If Redis does not answer, the node stays on these lists.
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

// confirmOuter checks that the outer command still holds its locks.
func (h *lockRun) confirmOuter(ctx context.Context) error {
	for _, w := range h.wanted {
		if w.outer == nil {
			continue
		}
		owner, err := h.ownerOf(ctx, w.outer.Key)
		if err != nil {
			return fmt.Errorf("cannot check lock %q, which the outer command holds, so the lock was %w: %w: %w",
				w.outer.Key, ErrNotHad, ErrRedisAway, err)
		}
		if owner != w.outer.Owner {
			return fmt.Errorf("lock %q was %w: the outer command held it (owner %s), "+
				"but its owner in redis %s is now %q",
				w.outer.Key, ErrLockLost, w.outer.Owner, h.locks.Host(), owner)
		}
		h.o.Note(fmt.Sprintf("lock %q: held by the outer command", w.outer.Key))
	}
	return nil
}

// ownerOf reads a lock's owner, and retries until the wait for the locks is over.
func (h *lockRun) ownerOf(ctx context.Context, key string) (string, error) {
	for {
		p, err := h.locks.State(ctx, key)
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
