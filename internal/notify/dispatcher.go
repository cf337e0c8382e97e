package notify

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"baton/internal/notify/service"
)

// queueMost is how many events wait for a target.
const queueMost = 1000

// Outcome is the outcome of an event for a target.
type Outcome string

// The outcomes.
const (
	Delivered Outcome = "delivered"
	Rejected  Outcome = "refused"  // the target will never take it
	GivenUp   Outcome = "given_up" // tried for long enough
	Dropped   Outcome = "dropped"  // the queue was full, or the target was taken out of the configuration
)

// Outcomes lists them.
func Outcomes() []Outcome { return []Outcome{Delivered, Rejected, GivenUp, Dropped} }

// Route is a target and how to deliver to it.
type Route struct {
	Name        string // in logs and metrics; unique
	Target      Target
	Timeout     time.Duration // of one attempt
	GiveUpAfter time.Duration // of all of them
	// Latest: a waiting event is useless once there is a later one.
	Latest bool
	// Pace bounds the attempts for the target; zero: no limit.
	Pace service.Pace
}

// Dispatcher delivers events. Its methods may be called at any time, and except for Close they return at once.
type Dispatcher struct {
	log    *zap.Logger
	report func(target string, o Outcome, events int)

	mu      sync.Mutex
	lanes   map[string]*lane
	closing bool // no more events are taken
	hurry   chan struct{}
	wg      sync.WaitGroup
}

// NewDispatcher makes one without targets. report is called with every outcome; it must
// not block, nor call the dispatcher.
func NewDispatcher(log *zap.Logger, report func(target string, o Outcome, events int)) *Dispatcher {
	return &Dispatcher{log: log, report: report, lanes: map[string]*lane{}, hurry: make(chan struct{})}
}

// Update replaces the targets. Events for a target that keeps its name are delivered by the new route, at once if they waited for the
// next attempt; those for a removed target are dropped.
func (d *Dispatcher) Update(routes []Route) {
	d.mu.Lock()
	defer d.mu.Unlock()
	gone := maps.Clone(d.lanes)
	for _, r := range routes {
		delete(gone, r.Name)
		if l := d.lanes[r.Name]; l != nil {
			l.route = r
			l.nudge()
			continue
		}
		d.lanes[r.Name] = newLane(r, d.log)
	}
	for name, l := range gone {
		delete(d.lanes, name)
		l.end()
		if n := l.clear(); n > 0 {
			d.report(name, Dropped, n)
			d.log.Warn("notifications are dropped: their target is no longer configured", zap.String("target", name), zap.Int("events", n))
		}
	}
}

// Send puts an event into the queue of the target of that name; without one nothing happens.
func (d *Dispatcher) Send(name string, e Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.lanes[name]
	switch {
	case l == nil:
		return
	case d.closing:
		d.drop(l, 1)
		return
	}
	d.drop(l, l.push(e, time.Now()))
	if !l.busy {
		l.busy = true
		d.wg.Go(func() { d.drain(l) })
	}
}

// Try makes one attempt now, ahead of the queue: an operator wants to know whether the target takes an event. known is false if there is
// no target of that name.
func (d *Dispatcher) Try(ctx context.Context, name string, e Event) (known bool, err error) {
	d.mu.Lock()
	l := d.lanes[name]
	var route Route
	if l != nil {
		route = l.route
	}
	d.mu.Unlock()
	if l == nil {
		return false, nil
	}
	return true, try(ctx, route, e)
}

// dropNotice is how often a full queue is logged.
const dropNotice = time.Minute

// drop counts events that are not delivered, with the lock held.
func (d *Dispatcher) drop(l *lane, n int) {
	if n == 0 {
		return
	}
	d.report(l.name, Dropped, n)
	l.dropped += n
	if now := time.Now(); now.Sub(l.noticed) >= dropNotice {
		d.log.Error("notifications are dropped: too many wait for the target; is it reachable?",
			zap.String("target", l.name), zap.Int("events", l.dropped))
		l.noticed, l.dropped = now, 0
	}
}

// Close takes no further event, tries the waiting ones at once and repeatedly, and returns when all are finished, or ctx ends. The
// remaining ones are given up.
func (d *Dispatcher) Close(ctx context.Context) {
	d.mu.Lock()
	if !d.closing {
		d.closing = true
		close(d.hurry)
	}
	lanes := slices.Collect(maps.Values(d.lanes))
	d.mu.Unlock()
	stop := context.AfterFunc(ctx, func() {
		for _, l := range lanes {
			l.end()
		}
	})
	d.wg.Wait()
	stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range lanes {
		l.end()
		if n := l.clear(); n > 0 {
			d.report(l.name, GivenUp, n)
			d.log.Error("notifications are given up: this process ends", zap.String("target", l.name), zap.Int("events", n))
		}
	}
}
