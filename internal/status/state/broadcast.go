package state

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"sync"
	"time"

	"baton/internal/diagnose"
)

const (
	// MaxStreams are watched at a time, by pages and programs together.
	MaxStreams = 32
	// tellEvery is how often those who watch are told.
	tellEvery = time.Second
)

// Update is the state at one moment, for all who watch.
type Update struct {
	Snapshot diagnose.Snapshot
	Known    bool
	// Revision counts the changes: it stays where only time has passed.
	Revision uint64

	Full, Public []byte            // as JSON, for those who may see all, and for the others
	still        [sha256.Size]byte // tells states apart
}

// broadcast tells many of the state: one goroutine gathers for all of them, as long as
// there are any. Whoever is slow misses states, and holds nobody up.
type broadcast struct {
	watch *State

	mu       sync.Mutex
	last     *Update
	watchers map[chan *Update]struct{}
	stop     context.CancelFunc // of the goroutine; nil: there is none
}

func newBroadcast(w *State) *broadcast {
	return &broadcast{watch: w, watchers: map[chan *Update]struct{}{}}
}

// Subscribe returns where every state is told, about once a second, until leave is called
// or the channel is closed, which is when the server ends. ok is false if too many watch:
// then there is nothing to leave.
func (b *broadcast) Subscribe() (updates <-chan *Update, leave func(), ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.watchers) >= MaxStreams {
		return nil, nil, false
	}
	c := make(chan *Update, 1)
	if b.stop == nil {
		ctx, stop := context.WithCancel(b.watch.Life)
		if !b.watch.begin(func() { b.run(ctx) }) {
			stop()
			return nil, nil, false
		}
		b.stop = stop
	} else if b.last != nil {
		c <- b.last
	}
	b.watchers[c] = struct{}{}
	return c, sync.OnceFunc(func() { b.leave(c) }), true
}

func (b *broadcast) leave(c chan *Update) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.watchers, c)
	if len(b.watchers) == 0 && b.stop != nil {
		b.stop()
		b.stop, b.last = nil, nil
	}
}

func (b *broadcast) run(ctx context.Context) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	var before *Update
	for {
		snap, known := b.watch.Snapshot(ctx)
		if ctx.Err() == nil {
			before = newUpdate(snap, known, before)
			b.tell(ctx, before)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			b.end()
			return
		}
	}
}

// tell hands an update to all, in place of the one that they have not taken.
func (b *broadcast) tell(ctx context.Context, u *Update) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	b.last = u
	for c := range b.watchers {
		select {
		case <-c:
		default:
		}
		c <- u
	}
}

// end lets all go when the server ends.
func (b *broadcast) end() {
	if b.watch.Life.Err() == nil {
		return // nobody watches any more, or others by now
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.watchers {
		delete(b.watchers, c)
		close(c)
	}
}

func newUpdate(s diagnose.Snapshot, known bool, before *Update) *Update {
	s = Listed(s)
	u := &Update{Snapshot: s, Known: known, Revision: 1}
	still, _ := json.Marshal(timeless(s)) // it is made of texts and numbers
	u.still = sha256.Sum256(still)
	if before != nil {
		u.Revision = before.Revision
		if u.still != before.still {
			u.Revision++
		}
	}
	u.Full, _ = json.Marshal(s)
	u.Public, _ = json.Marshal(Public(s))
	return u
}

// timeless is a state without what changes by itself.
func timeless(s diagnose.Snapshot) diagnose.Snapshot {
	s.Now, s.AgeMS = time.Time{}, 0
	if s.Leader != nil {
		l := *s.Leader
		l.LeaseLeftMS = min(l.LeaseLeftMS, 0)
		s.Leader = &l
	}
	s.Nodes = append([]diagnose.Node{}, s.Nodes...)
	for i := range s.Nodes {
		s.Nodes[i].LastSeenMSAgo = 0
	}
	s.Locks = append([]diagnose.Lock(nil), s.Locks...)
	for i, l := range s.Locks {
		if l.Leader != nil {
			leader := *l.Leader
			leader.LeaseLeftMS = min(leader.LeaseLeftMS, 0)
			s.Locks[i].Leader = &leader
		}
	}
	return s
}
