package baton

import (
	"context"
	"log/slog"
	"sync"

	"baton/internal/elector"
)

// Event is an event of an election, from the view of this process.
type Event struct {
	Kind EventKind
	// Node is the leading node, which may be this node. It is "" if there is no leader, or if a client of another program holds the lock.
	Node string
	// Epoch is the epoch of the term. It is 0 if the epoch is unknown.
	Epoch int64
	// Reason is a text for people.
	Reason string
	// Err is the error of Redis. In EventEnded it is the error that the function has returned.
	Err error
	// Released is set only in EventEnded. It means that Redis has confirmed the release of the lock.
	Released bool
}

// EventKind is the kind of an event. Later versions may have more kinds.
type EventKind string

// These are the kinds of events.
const (
	EventLeading     EventKind = "leading"     // this process leads
	EventFollowing   EventKind = "following"   // another node leads, see Node
	EventWaiting     EventKind = "waiting"     // no node leads, and this node may not lead yet, see Reason
	EventStopping    EventKind = "stopping"    // the context of the function has ended, see Reason
	EventEnded       EventKind = "ended"       // the function has returned and the term is over, see Reason
	EventUnavailable EventKind = "unavailable" // Redis does not answer, or returns an error, see Err
	EventAvailable   EventKind = "available"   // Redis answers again
)

// observer converts the events of package elector into events of this package.
type observer struct {
	lock Lock
	mu   sync.Mutex // needed because events come from several goroutines
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
