// Package outage reports in the log that a Redis is unavailable: once for all elections and jobs
// of a node.
package outage

import (
	"errors"
	"sync"
	"time"

	"baton/internal/job"
	"baton/internal/redisconn"

	"go.uber.org/zap"
)

const (
	// repeatAfter is how often an outage that lasts is logged.
	repeatAfter = time.Minute
	// newCauseAfter is how long another cause must last before it is logged, too: a server that
	// starts up refuses for a moment.
	newCauseAfter = 5 * time.Second
	// quietFor is for how long nothing may fail before an outage is called over: of a
	// server that is full some commands fail, and others do not.
	quietFor = 2 * time.Second
	// checkEvery is how often an outage is checked.
	checkEvery = time.Second
)

// Outage is the one place that logs that a Redis is unavailable: once for all
// elections and jobs of the node that meet it, once a minute while it lasts, and when it is
// over. A job's own failure is logged for that job, elsewhere. A nil one logs nothing.
type Outage struct {
	log *zap.Logger

	mu     sync.Mutex
	since  time.Time         // of the first failure; zero: there is no outage
	failed time.Time         // the last failure
	worked time.Time         // the first success after that; zero: there was none
	logged time.Time         // the last line; zero: none was logged of this outage
	causes map[string]*cause // by code
	last   *cause
	tries  int             // that have failed
	jobs   map[string]bool // that have met it
	locks  map[string]bool // whose elections are in trouble now
	spoken map[string]time.Time
	timer  *time.Timer
	ended  time.Time // the last outage; zero: there was none
	closed bool
}

// cause is one reason why a Redis is unavailable.
type cause struct {
	code        string
	err         error
	first, seen time.Time
	logged      bool
}

// New makes an outage that has not begun.
func New(log *zap.Logger) *Outage {
	return &Outage{log: log, spoken: map[string]time.Time{}}
}

// Tried notes an attempt of a job to record something in Redis. It ignores an error that says
// nothing about the server. A start that was held back made no attempt; if an outage lasts, the
// outage held it back.
func (o *Outage) Tried(name string, err error) {
	if o == nil {
		return
	}
	code := redisconn.Unavailable(err)
	switch {
	case err == nil:
		o.worksAgain()
	case errors.Is(err, job.ErrHeldBack):
		o.met(name)
	case code != "":
		o.fails(code, err, func() { o.jobs[name] = true })
	}
}

// Asked notes the result of a request to Redis that belongs to no job.
func (o *Outage) Asked(err error) {
	switch code := redisconn.Unavailable(err); {
	case err == nil:
		o.worksAgain()
	case code != "":
		o.fails(code, err, func() {})
	}
}

// met counts a job among those that the outage stops, if there is one.
func (o *Outage) met(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.since.IsZero() {
		o.jobs[name] = true
	}
}

// Explains reports whether an error is the server's fault, and not the fault of the job that has
// met it. A missing answer may be due to that job's own request: it is the server's fault only
// during an outage.
func (o *Outage) Explains(err error) bool {
	if o == nil {
		return false
	}
	code := redisconn.Unavailable(err)
	o.mu.Lock()
	defer o.mu.Unlock()
	return code != "" && (code != redisconn.UnavailableSilent || !o.since.IsZero())
}

// Lasts reports whether there is an outage, or was one until a moment ago. An outage is logged,
// and reports that it held back are sent as soon as Redis takes them.
func (o *Outage) Lasts() bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.since.IsZero() || !o.ended.IsZero() && time.Since(o.ended) < repeatAfter
}

// Lost notes that the election of a lock is in trouble. An error that is not the server's
// fault counts as a cause of that lock alone.
func (o *Outage) Lost(lock string, err error) {
	if o == nil {
		return
	}
	code := redisconn.Unavailable(err)
	if code == "" {
		code = "lock " + lock
	}
	o.fails(code, err, func() { o.locks[lock] = true })
}

// NotRenewed counts a renewal that has failed. It begins no outage: only [Outage.Lost] does for
// an election.
func (o *Outage) NotRenewed() {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.since.IsZero() {
		o.tries++
	}
}

// Back notes that the election of a lock is in trouble no more.
func (o *Outage) Back(lock string) {
	if o == nil {
		return
	}
	o.mu.Lock()
	delete(o.locks, lock)
	o.mu.Unlock()
	o.worksAgain()
}

// Forget leaves out a lock that this node contends for no more.
func (o *Outage) Forget(lock string) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.locks, lock)
}

func (o *Outage) worksAgain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.since.IsZero() && o.worked.IsZero() {
		o.worked = time.Now()
	}
}

// fails notes a failure; who notes the job or the lock that has met it. An unreached server and
// a missing answer count as one cause: they may alternate from one attempt to the next.
func (o *Outage) fails(code string, err error, who func()) {
	if code == redisconn.UnavailableUnreached || code == redisconn.UnavailableSilent {
		code = "no answer"
	}
	o.mu.Lock()
	now := time.Now()
	if o.since.IsZero() {
		o.since, o.logged, o.tries = now, time.Time{}, 0
		o.causes, o.jobs, o.locks = map[string]*cause{}, map[string]bool{}, map[string]bool{}
		if !o.closed {
			o.timer = time.AfterFunc(checkEvery, o.check)
		}
	}
	who()
	c := o.causes[code]
	if c == nil {
		c = &cause{code: code, first: now}
		o.causes[code] = c
	}
	c.err, c.seen = err, now
	o.last, o.failed, o.worked = c, now, time.Time{}
	o.tries++
	say := func() {}
	if o.logged.IsZero() {
		say = o.report(c, now)
	}
	o.mu.Unlock()
	say()
}

// report marks a cause as logged, and returns the function that logs it. The function does
// nothing if an earlier outage logged the cause a moment ago. The caller holds o.mu.
func (o *Outage) report(c *cause, now time.Time) (say func()) {
	if before, ok := o.spoken[c.code]; ok && now.Sub(before) < repeatAfter {
		return func() {}
	}
	c.logged, o.logged, o.spoken[c.code] = true, now, now
	fields := o.fields(c)
	return func() { o.log.Warn("redis unavailable, retrying", fields...) }
}

// fields returns the log fields of the outage and of one of its causes. The caller holds o.mu.
func (o *Outage) fields(c *cause) []zap.Field {
	return []zap.Field{
		zap.String("cause", c.code), zap.Int("failed_attempts", o.tries),
		zap.Int("jobs", len(o.jobs)), zap.Int("locks", len(o.locks)), zap.Error(c.err),
	}
}

// check reports the state of an outage until it is over.
func (o *Outage) check() {
	o.mu.Lock()
	now, say := time.Now(), func() {}
	quiet := now.Sub(o.failed)
	switch {
	case o.closed:
		o.mu.Unlock()
		return
	case len(o.locks) == 0 && !o.worked.IsZero() && quiet >= quietFor:
		say = o.over("redis available again", o.worked)
	case len(o.locks) == 0 && quiet >= repeatAfter: // no attempts any more: another node leads, say
		say = o.over("redis no longer tried: this node has nothing to ask of it", o.failed)
	case !o.logged.IsZero() && now.Sub(o.logged) >= repeatAfter:
		o.logged, o.spoken[o.last.code] = now, now
		fields := append(o.fields(o.last), zap.Duration("after", now.Sub(o.since).Round(100*time.Millisecond)))
		say = func() { o.log.Warn("redis still unavailable, retrying", fields...) }
	case !o.last.logged && (o.logged.IsZero() || now.Sub(o.last.first) >= newCauseAfter && now.Sub(o.last.seen) < newCauseAfter):
		say = o.report(o.last, now)
	}
	if !o.since.IsZero() {
		o.timer = time.AfterFunc(checkEvery, o.check)
	}
	o.mu.Unlock()
	say()
}

// over ends the outage. One that was not logged ends in silence. The caller holds o.mu.
func (o *Outage) over(text string, at time.Time) (say func()) {
	logged := !o.logged.IsZero()
	after := at.Sub(o.since).Round(100 * time.Millisecond)
	fields := []zap.Field{zap.Duration("after", after), zap.Int("failed_attempts", o.tries), zap.Int("jobs", len(o.jobs))}
	o.since, o.ended = time.Time{}, time.Now()
	return func() {
		if logged {
			o.log.Info(text, fields...)
		}
	}
}

// Close ends the reporting.
func (o *Outage) Close() {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	if o.timer != nil {
		o.timer.Stop()
	}
}
