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

// queueMost is the maximum number of events that wait for a target.
const queueMost = 1000

// Outcome is the result of the delivery of an event to a target.
type Outcome string

// These are the values of Outcome.
const (
	Delivered Outcome = "delivered"
	Rejected  Outcome = "refused"  // the target will never accept the event
	GivenUp   Outcome = "given_up" // the event was tried for the maximum time
	Dropped   Outcome = "dropped"  // the queue was full, or the target was removed from the configuration
)

// Outcomes returns all outcomes.
func Outcomes() []Outcome { return []Outcome{Delivered, Rejected, GivenUp, Dropped} }

// Route is a target, with the settings for deliveries to it.
type Route struct {
	Name        string // the name in logs and metrics, which is unique
	Target      Target
	Timeout     time.Duration // the time limit of one attempt
	GiveUpAfter time.Duration // the time limit of all attempts
	// Latest means that a waiting event is useless when there is a later event.
	Latest bool
	// Pace limits the attempts for the target. Zero means no limit.
	Pace service.Pace
}

// Dispatcher delivers events. Its methods may be called at any time. All methods except Close return immediately.
type Dispatcher struct {
	log    *zap.Logger
	report func(target string, o Outcome, events int)

	mu      sync.Mutex
	lanes   map[string]*targetQueue
	closing bool // no more events are accepted
	hurry   chan struct{}
	wg      sync.WaitGroup
}

// NewDispatcher returns a Dispatcher without targets. It calls the function report with every outcome. This function must not block, and
// must not call the Dispatcher.
func NewDispatcher(log *zap.Logger, report func(target string, o Outcome, events int)) *Dispatcher {
	return &Dispatcher{log: log, report: report, lanes: map[string]*targetQueue{}, hurry: make(chan struct{})}
}

// Update replaces the targets. Events for a target that keeps its name are delivered by the new route, and events that wait for their next
// attempt are tried immediately. Events for a removed target are dropped.
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

// Send puts an event into the queue of the target with the given name. If there is no such target, it does nothing.
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

// Try makes one attempt immediately, before the events in the queue, because an operator needs to know whether the target accepts an event.
// The result known is false if there is no target with the given name.
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

// dropNotice is the minimum time between two log lines about a full queue.
const dropNotice = time.Minute

// drop counts events that are not delivered. The caller holds the dispatcher's lock.
func (d *Dispatcher) drop(l *targetQueue, n int) {
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

// Close accepts no further events. It tries the waiting events immediately and repeatedly. It returns when all events are finished or when
// ctx ends, and gives up the remaining events.
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
			d.log.Error("notifications are lost: this process ends before they were delivered",
				zap.String("target", l.name), zap.Int("events", n))
		}
	}
}
