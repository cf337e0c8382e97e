package notify

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"

	"baton/internal/notify/service"
)

// The pauses between two attempts.
const (
	againMin  = time.Second
	againMax  = time.Minute
	againLast = 200 * time.Millisecond // while the process ends
)

// lane is a target and its queue. The dispatcher's lock guards it, except ctx and nudged.
type lane struct {
	name   string
	route  Route
	queue  []waiting
	busy   bool            // a goroutine delivers
	ctx    context.Context // ends when no more events are to be delivered
	end    context.CancelFunc
	nudged chan struct{}

	dropped int // since the last line of the log
	noticed time.Time

	// Used by that goroutine only, from one to the next.
	pause *backoff.ExponentialBackOff
	said  logLimiter
	tries []time.Time // the latest attempts, for the target's pace
}

// waiting is an event in the queue.
type waiting struct {
	event Event
	since time.Time
}

func newLane(r Route, log *zap.Logger) *lane {
	l := &lane{name: r.Name, route: r, nudged: make(chan struct{}, 1), pause: newPause(), said: logLimiter{log: log}}
	l.ctx, l.end = context.WithCancel(context.Background()) // deliveries outlive the requests for them
	return l
}

// push adds an event and returns how many were dropped for it.
func (l *lane) push(e Event, now time.Time) (dropped int) {
	if l.route.Latest {
		l.queue = l.queue[:0]
	}
	if len(l.queue) >= queueMost {
		dropped = 1
		l.queue[0] = waiting{} // the slice lives on
		l.queue = l.queue[1:]
	}
	l.queue = append(l.queue, waiting{e, now})
	return dropped
}

// clear drops the queue, and returns its length.
func (l *lane) clear() int {
	n := len(l.queue)
	l.queue = nil
	return n
}

// nudge cuts a pause between attempts short.
func (l *lane) nudge() {
	select {
	case l.nudged <- struct{}{}:
	default:
	}
}

// drain delivers the events of a queue until it is empty.
func (d *Dispatcher) drain(l *lane) {
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

// deliver tries one event until it is delivered or given up. The pauses go on from one event to the next: a long queue must not cause
// more frequent attempts at a target that is away.
func (d *Dispatcher) deliver(l *lane, w waiting) Outcome {
	for attempt := 1; ; attempt++ {
		d.keepPace(l, d.routeOf(l).Pace)
		route := d.routeOf(l) // a reload may have changed it
		err := try(l.ctx, route, w.event)
		switch {
		case err == nil:
			l.pause.Reset()
			l.said.well(route)
			return Delivered
		case errors.Is(err, ErrRefused):
			l.pause.Reset() // the target answers
			l.said.failed("a notification is refused, and not sent again", route, w.event, attempt, err)
			return Rejected
		case l.ctx.Err() != nil && !d.isClosing():
			return Dropped // the target has been taken out
		case l.ctx.Err() != nil, time.Since(w.since) >= route.GiveUpAfter:
			l.said.failed("a notification is given up", route, w.event, attempt, err)
			d.rest(l, err) // before the next one
			return GivenUp
		}
		l.said.again(route, w.event, attempt, err)
		d.rest(l, err)
	}
}

func (d *Dispatcher) routeOf(l *lane) Route {
	d.mu.Lock()
	defer d.mu.Unlock()
	return l.route
}

func (d *Dispatcher) isClosing() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closing
}

// try makes one attempt.
func try(ctx context.Context, r Route, e Event) error {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	return r.Target.Send(ctx, e)
}

// keepPace waits until the target's pace allows one more attempt. At the end of the process it does not wait: one message too many is
// better than a lost one.
func (d *Dispatcher) keepPace(l *lane, p service.Pace) {
	if p.Most > 0 {
		l.tries = l.tries[max(0, len(l.tries)-p.Most):]
		if len(l.tries) == p.Most && !d.isClosing() {
			l.sleep(time.Until(l.tries[0].Add(p.Within)), d.hurry)
		}
		l.tries = append(l.tries, time.Now())
	}
}

// rest waits between two attempts, at least as long as the target asks for: less when the target is
// changed or the process ends.
func (d *Dispatcher) rest(l *lane, err error) {
	pause, hurry := l.pause.NextBackOff(), (<-chan struct{})(d.hurry)
	if later, ok := errors.AsType[*service.Later](err); ok {
		pause = max(pause, later.Wait)
	}
	if d.isClosing() {
		pause, hurry = againLast, nil
	}
	l.sleep(pause, hurry)
}

// sleep waits that long, or until the target is changed or taken out, or hurry is closed.
func (l *lane) sleep(pause time.Duration, hurry <-chan struct{}) {
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

// logLimiter keeps a target that is away from filling the log.
type logLimiter struct {
	log   *zap.Logger
	text  string
	at    time.Time
	tried bool // the log knows that something is being tried again
}

const sayAgain = time.Minute

func (s *logLimiter) well(r Route) {
	if s.tried {
		s.log.Info("notifications are delivered again", zap.String("target", r.Name))
	}
	*s = logLimiter{log: s.log}
}

// again reports an attempt that is not the last, once until one succeeds.
func (s *logLimiter) again(r Route, e Event, attempt int, err error) {
	level := zap.DebugLevel
	if !s.tried {
		level = zap.WarnLevel
	}
	s.tried = true
	s.log.Log(level, "a notification was not delivered; it is tried again", fields(r, e, attempt, err)...)
}

// failed reports an undelivered event: the same one at most once a minute.
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
