package notify

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"

	"baton/internal/notify/service"
)

// These are the pauses between two attempts.
const (
	againMin  = time.Second
	againMax  = time.Minute
	againLast = 200 * time.Millisecond // while the process ends
)

// targetQueue is a target with its queue. The dispatcher's lock protects it, except for ctx and nudged.
type targetQueue struct {
	name   string
	route  Route
	queue  []queuedEvent
	busy   bool            // a goroutine is delivering events
	ctx    context.Context // ends when no more events may be delivered
	end    context.CancelFunc
	nudged chan struct{}

	dropped int // the number of dropped events since the last log line
	noticed time.Time

	// The fields below are used only by the goroutine that delivers events.
	pause *backoff.ExponentialBackOff
	said  logLimiter
	tries []time.Time // the times of the latest attempts, for the target's pace
}

// queuedEvent is an event in the queue, with the time when it was added.
type queuedEvent struct {
	event Event
	since time.Time
}

func newLane(r Route, log *zap.Logger) *targetQueue {
	l := &targetQueue{name: r.Name, route: r, nudged: make(chan struct{}, 1), pause: newPause(), said: logLimiter{log: log}}
	l.ctx, l.end = context.WithCancel(context.Background()) // deliveries continue after the requests that caused them
	return l
}

// push adds an event. It returns the number of events that it has dropped to make room.
func (l *targetQueue) push(e Event, now time.Time) (dropped int) {
	if l.route.Latest {
		l.queue = l.queue[:0]
	}
	if len(l.queue) >= queueMost {
		dropped = 1
		l.queue[0] = queuedEvent{} // the slice keeps its array, so the event must be cleared
		l.queue = l.queue[1:]
	}
	l.queue = append(l.queue, queuedEvent{e, now})
	return dropped
}

// clear drops all events in the queue, and returns their number.
func (l *targetQueue) clear() int {
	n := len(l.queue)
	l.queue = nil
	return n
}

// nudge ends a pause between two attempts early.
func (l *targetQueue) nudge() {
	select {
	case l.nudged <- struct{}{}:
	default:
	}
}

// drain delivers the events of a queue until the queue is empty.
func (d *Dispatcher) drain(l *targetQueue) {
	for {
		d.mu.Lock()
		if len(l.queue) == 0 || l.ctx.Err() != nil {
			l.busy = false
			d.mu.Unlock()
			return
		}
		next := l.queue[0]
		l.queue = l.queue[1:]
		d.mu.Unlock()
		d.report(l.name, d.deliver(l, next), 1)
	}
}

// deliver tries one event until the event is delivered or given up. The pauses continue to grow from one event to the next, so that a long
// queue does not cause more frequent attempts at a target that does not answer.
func (d *Dispatcher) deliver(l *targetQueue, w queuedEvent) Outcome {
	for attempt := 1; ; attempt++ {
		d.keepPace(l, d.routeOf(l).Pace)
		route := d.routeOf(l) // a reload may have changed the route
		err := try(l.ctx, route, w.event)
		switch {
		case err == nil:
			l.pause.Reset()
			l.said.well(route)
			return Delivered
		case errors.Is(err, ErrRefused):
			l.pause.Reset() // the target answers
			l.said.failed("the target refused a notification; it is not sent again", route, w.event, attempt, err)
			return Rejected
		case l.ctx.Err() != nil && !d.isClosing():
			return Dropped // the target was removed
		case l.ctx.Err() != nil, time.Since(w.since) >= route.GiveUpAfter:
			l.said.failed("a notification is given up, and not sent again", route, w.event, attempt, err)
			d.rest(l, err) // before the next event
			return GivenUp
		}
		l.said.again(route, w.event, attempt, err)
		d.rest(l, err)
	}
}

func (d *Dispatcher) routeOf(l *targetQueue) Route {
	d.mu.Lock()
	defer d.mu.Unlock()
	return l.route
}

func (d *Dispatcher) isClosing() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closing
}

// try makes one attempt to deliver an event.
func try(ctx context.Context, r Route, e Event) error {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	return r.Target.Send(ctx, e)
}

// keepPace waits until the target's pace allows one more attempt. It does not wait when this process is about to end, because one message
// too many is better than a lost message.
func (d *Dispatcher) keepPace(l *targetQueue, p service.Pace) {
	if p.Most > 0 {
		l.tries = l.tries[max(0, len(l.tries)-p.Most):]
		if len(l.tries) == p.Most && !d.isClosing() {
			l.sleep(time.Until(l.tries[0].Add(p.Within)), d.hurry)
		}
		l.tries = append(l.tries, time.Now())
	}
}

// rest waits between two attempts, at least as long as the target requests. It ends early if the target is changed, or if the process ends.
func (d *Dispatcher) rest(l *targetQueue, err error) {
	pause, hurry := l.pause.NextBackOff(), (<-chan struct{})(d.hurry)
	if later, ok := errors.AsType[*service.Later](err); ok {
		pause = max(pause, later.Wait)
	}
	if d.isClosing() {
		pause, hurry = againLast, nil
	}
	l.sleep(pause, hurry)
}

// sleep waits for the duration in the argument pause. It returns earlier if the target is changed or removed, or when the channel hurry is
// closed.
func (l *targetQueue) sleep(pause time.Duration, hurry <-chan struct{}) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.nudged:
	case <-hurry:
	case <-l.ctx.Done():
	}
}

func newPause() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier, b.RandomizationFactor = againMin, againMax, 2, 0.2
	b.Reset()
	return b
}

// logLimiter limits the log lines about a target that does not answer.
type logLimiter struct {
	log   *zap.Logger
	text  string
	at    time.Time
	tried bool // it was logged that an event is being tried again
}

const sayAgain = time.Minute

func (s *logLimiter) well(r Route) {
	if s.tried {
		s.log.Info("notifications are delivered again", zap.String("target", r.Name))
	}
	*s = logLimiter{log: s.log}
}

// The method again logs a failed attempt that will be repeated. It logs nothing more until an attempt succeeds.
func (s *logLimiter) again(r Route, e Event, attempt int, err error) {
	level := zap.DebugLevel
	if !s.tried {
		level = zap.WarnLevel
	}
	s.tried = true
	s.log.Log(level, "a notification was not delivered; it is tried again", fields(r, e, attempt, err)...)
}

// The method failed logs that an event was not delivered. It logs the same failure at most once per minute.
func (s *logLimiter) failed(what string, r Route, e Event, attempt int, err error) {
	level := zap.ErrorLevel
	if text := what + err.Error(); text == s.text && time.Since(s.at) < sayAgain {
		level = zap.DebugLevel
	} else {
		s.text, s.at = text, time.Now()
	}
	s.log.Log(level, what, fields(r, e, attempt, err)...)
}

func fields(r Route, e Event, attempt int, err error) []zap.Field {
	all := []zap.Field{zap.String("target", r.Name), zap.String("event", string(e.Kind)), zap.Int("attempt", attempt), zap.Error(err)}
	if e.Job != "" {
		all = append(all, zap.String("job", e.Job))
	}
	return all
}
