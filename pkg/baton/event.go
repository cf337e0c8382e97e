package baton

import (
	"context"
	"log/slog"
	"sync"

	"baton/internal/elector"
)

// Event is something that happens in an election, as this process sees it.
type Event struct {
	Kind EventKind
	// Node leads: this one or another; "" without a leader, or if another program's client holds the lock.
	Node string
	// Epoch is that of the term; 0 while unknown.
	Epoch int64
	// Reason is for people.
	Reason string
	// Err is the error of Redis. In EventEnded it is the error that the function has returned.
	Err error
	// Released, of EventEnded: Redis has confirmed that the lock is given back.
	Released bool
}

// EventKind says what happens. There may be more kinds in later versions.
type EventKind string

// The kinds of events.
const (
	EventLeading     EventKind = "leading"     // this process leads
	EventFollowing   EventKind = "following"   // another one does: Node
	EventWaiting     EventKind = "waiting"     // none does, and this one may not yet: Reason
	EventStopping    EventKind = "stopping"    // the function's context has ended: Reason
	EventEnded       EventKind = "ended"       // the function has returned, and the term is over: Reason
	EventUnavailable EventKind = "unavailable" // Redis does not answer, or refuses: Err
	EventAvailable   EventKind = "available"   // it answers again
)

// observer turns the elector's events into those of the package.
type observer struct {
	lock Lock
	mu   sync.Mutex // events come from several goroutines
}

func (o *observer) observe(ev elector.Event) {
	e := Event{Node: ev.Holder, Epoch: ev.Epoch, Reason: ev.Reason, Err: ev.Err, Released: ev.Released}
	level := slog.LevelInfo
	switch ev.Kind {
	case elector.EventWon:
		e.Kind, e.Node = EventLeading, o.lock.Node
	case elector.EventStandby:
		e.Kind = EventFollowing
	case elector.EventWaiting:
		e.Kind = EventWaiting
	case elector.EventStopping:
		e.Kind, e.Node = EventStopping, o.lock.Node
	case elector.EventStoreLost:
		e.Kind, level = EventUnavailable, slog.LevelWarn
	case elector.EventStoreBack:
		e.Kind = EventAvailable
	default:
		if !ev.Kind.Ends() || ev.Kind == elector.EventWithdrawn {
			return
		}
		e.Kind = EventEnded
		if ev.Kind == elector.EventLost || ev.Kind == elector.EventExpired {
			level = slog.LevelWarn
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.log(level, e)
	o.lock.OnChange(e)
}

func (o *observer) log(level slog.Level, e Event) {
	attributes := []slog.Attr{slog.String("lock", o.lock.Key), slog.String("node", o.lock.Node)}
	if e.Node != "" && e.Node != o.lock.Node {
		attributes = append(attributes, slog.String("leader", e.Node))
	}
	if e.Epoch != 0 {
		attributes = append(attributes, slog.Int64("epoch", e.Epoch))
	}
	if e.Reason != "" {
		attributes = append(attributes, slog.String("reason", e.Reason))
	}
	if e.Err != nil {
		attributes = append(attributes, slog.Any("error", e.Err))
	}
	o.lock.Logger.LogAttrs(context.Background(), level, "election: "+string(e.Kind), attributes...)
}
