package state

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"baton/internal/diagnose"
	"baton/internal/status/web"
)

const (
	// MaxStreams bounds the readers of the feed, pages and programs together.
	MaxStreams = 32
	// updateEvery is the time between two readings of the state for streams.
	updateEvery = time.Second
)

// Update is the state at one moment, for all readers of the feed.
type Update struct {
	Snapshot diagnose.Snapshot
	Known    bool
	// Revision counts the changes. It stays the same if only time has passed.
	Revision uint64

	Full, Public []byte            // as JSON, for callers with and without the right to see everything
	still        [sha256.Size]byte // identifies the state
}

// newLive returns the feed of the state: one goroutine gathers for all readers, about once a
// second.
func newLive(w *State) *web.Feeds[struct{}, *Update] {
	return web.NewFeeds(web.Source[struct{}, *Update]{
		Most: MaxStreams, Life: w.Life, Begin: w.Begin,
		Open: func(struct{}) func(context.Context, *web.Feed[*Update]) { return w.gather },
	})
}

// Subscribe returns the feed of the state, until leave is called or the server ends. ok is
// false if the feed has too many readers or the server has ended: then leave is nil.
func (w *State) Subscribe() (updates *web.Feed[*Update], leave func(), ok bool) {
	return w.live.Join(struct{}{})
}

// gather fills the feed until ctx ends.
func (w *State) gather(ctx context.Context, to *web.Feed[*Update]) {
	tick := time.NewTicker(updateEvery)
	defer tick.Stop()
	for before := (*Update)(nil); ; {
		snap, known := w.Snapshot(ctx)
		if ctx.Err() == nil {
			before = newUpdate(snap, known, before)
			to.Put(before)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func newUpdate(s diagnose.Snapshot, known bool, before *Update) *Update {
	s = Listed(s)
	u := &Update{Snapshot: s, Known: known, Revision: 1}
	still, _ := json.Marshal(timeless(s)) // cannot fail: it has only texts and numbers
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

// timeless returns a state without the values that change only with time.
func timeless(s diagnose.Snapshot) diagnose.Snapshot {
	s.Now, s.Age = time.Time{}, 0
	if s.Leader != nil {
		l := *s.Leader
		l.LeaseLeft = min(l.LeaseLeft, 0)
		s.Leader = &l
	}
	s.Nodes = append([]diagnose.Node{}, s.Nodes...)
	for i := range s.Nodes {
		s.Nodes[i].LastSeenAgo = 0
	}
	s.Locks = append([]diagnose.Lock(nil), s.Locks...)
	for i, l := range s.Locks {
		if l.Leader != nil {
			leader := *l.Leader
			leader.LeaseLeft = min(leader.LeaseLeft, 0)
			s.Locks[i].Leader = &leader
		}
	}
	return s
}
