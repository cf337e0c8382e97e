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
	// MaxStreams is the maximum number of readers of the feed, which are pages and programs.
	MaxStreams = 32
	// updateEvery is how often the state is read for streams.
	updateEvery = time.Second
)

// Update is the state at one point in time, for all readers of the feed.
type Update struct {
	Snapshot diagnose.Snapshot
	Known    bool
	// Revision counts the changes. It does not change if only time has passed.
	Revision uint64

	Full, Public []byte            // as JSON, for callers who may see everything, and for other callers
	still        [sha256.Size]byte // identifies the state
}

// newLive returns the feed of the state. One goroutine reads the state for all readers, about once per second.
func newLive(w *State) *web.Feeds[struct{}, *Update] {
	return web.NewFeeds(web.Source[struct{}, *Update]{
		Most: MaxStreams, Life: w.Life, Begin: w.Begin,
		Open: func(struct{}) func(context.Context, *web.Feed[*Update]) { return w.gather },
	})
}

// Subscribe returns the feed of the state. The feed gets new values until the function leave is called or the server ends. If the feed has
// too many readers or the server has ended, ok is false and leave is nil.
func (w *State) Subscribe() (updates *web.Feed[*Update], leave func(), ok bool) {
	return w.live.Join(struct{}{})
}

// gather updates the feed until ctx ends.
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
	still, _ := json.Marshal(timeless(s)) // cannot fail, because it contains only texts and numbers
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

// timeless returns the state s without the values that change only because time passes.
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
