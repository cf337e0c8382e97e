// Package outage reports in the log that a Redis is unavailable: once for all elections and jobs of a node.
//
//	          a request fails, and the server is the reason; or an election is in trouble
//	no outage ────────────────────────────────────────────────────────────────────────────► outage
//	   ▲                                                                                      │
//	   └──────────────────────────────────────────────────────────────────────────────────────┘
//	          no election is in trouble, and no request has failed for 2 s and one has succeeded,
//	          or no request has failed for a minute, because this node no longer sends requests
//
// Jobs report the results of their requests to [Outage.Tried]. Elections report to [Outage.Lost], [Outage.NotRenewed] and
// [Outage.Back]. Other requests are reported to [Outage.Asked].
//
// The invariants:
//
//   - An outage is logged when it begins, once per minute while it lasts, and when it is over. The lines contain the cause, and the
//     numbers of failed attempts, jobs and locks.
//   - Another cause during an outage is logged if it lasts, but each cause at most once per minute, even if outages follow one another.
//   - An error is logged only once: a job does not log an error that the outage explains ([Outage.Explains]).
//
// Failures: an error that concerns only one command or one job begins no outage, and is left to the caller's own log.
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
	// repeatAfter is the interval between log lines while an outage lasts.
	repeatAfter = time.Minute
	// newCauseAfter is how long a new cause of an outage must last before it is also logged. The reason is that a server that starts up
	// refuses commands for a moment.
	newCauseAfter = 5 * time.Second
	// quietFor is the time without a failed request that ends an outage, because a full server refuses some commands and accepts others.
	quietFor = 2 * time.Second
	// checkEvery is the interval between two checks of an outage.
	checkEvery = time.Second
)

// Outage is the only place that logs that a Redis is unavailable. An outage is logged once for all elections and jobs of the node that it
// affects. It is logged again every minute while it lasts, and when it is over. A failure that concerns only one job is not logged here,
// but by the job's reporter. A nil Outage logs nothing.
type Outage struct {
	log *zap.Logger

	mu     sync.Mutex
	since  time.Time         // time of the first failure; zero: there is no outage
	failed time.Time         // the last failure
	worked time.Time         // the first success after failed; zero: none
	logged time.Time         // time of the last log line; zero: this outage was not logged yet
	causes map[string]*cause // by code
	last   *cause
	tries  int             // number of failed attempts
	jobs   map[string]bool // the jobs that the outage has affected
	locks  map[string]bool // the locks whose elections are in trouble now
	spoken map[string]time.Time
	timer  *time.Timer
	ended  time.Time // the end of the last outage; zero: there was no outage
	closed bool
}

// cause is one of the reasons why a Redis is unavailable.
type cause struct {
	code        string
	err         error
	first, seen time.Time
	logged      bool
}

// New returns an Outage without an outage in progress.
func New(log *zap.Logger) *Outage {
	return &Outage{log: log, spoken: map[string]time.Time{}}
}

// Tried records the result of a job's attempt to store something in Redis. It ignores an error that says nothing about the server. If the
// start of a run was held back (job.ErrHeldBack), no attempt was made. During an outage, Tried then only counts this job among the affected
// jobs.
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

// Asked records the result of a request to Redis that belongs to no job.
func (o *Outage) Asked(err error) {
	switch code := redisconn.Unavailable(err); {
	case err == nil:
		o.worksAgain()
	case code != "":
		o.fails(code, err, func() {})
	}
}

// met counts a job among the jobs that the outage affects, if there is an outage.
func (o *Outage) met(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.since.IsZero() {
		o.jobs[name] = true
	}
}

// Explains reports whether an error is the server's fault, and not the fault of the job that got the error. If an answer is missing, the
// job's own request may be the reason. So a missing answer counts as the server's fault only during an outage.
func (o *Outage) Explains(err error) bool {
	if o == nil {
		return false
	}
	code := redisconn.Unavailable(err)
	o.mu.Lock()
	defer o.mu.Unlock()
	return code != "" && (code != redisconn.UnavailableSilent || !o.since.IsZero())
}

// Lasts reports whether there is an outage, or was an outage until a moment ago. The caller then needs no log line of its own, because the
// outage is logged. Reports that could not be sent are sent as soon as Redis accepts them.
func (o *Outage) Lasts() bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.since.IsZero() || !o.ended.IsZero() && time.Since(o.ended) < repeatAfter
}

// Lost records that the election of a lock is in trouble. If the server is not the reason for the error, the error counts as a cause only
// for that lock.
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

// NotRenewed counts a renewal that has failed. It never starts an outage, because only [Outage.Lost] starts an outage for an election.
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

// Back records that the election of a lock is no longer in trouble.
func (o *Outage) Back(lock string) {
	if o == nil {
		return
	}
	o.mu.Lock()
	delete(o.locks, lock)
	o.mu.Unlock()
	o.worksAgain()
}

// Forget removes a lock that this node no longer contends for.
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

// fails records a failure. It calls the function who, which records the affected job or lock. "The server was not reached" and "the server
// did not answer" count as one cause, because the attempts during one outage may fail in both ways.
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

// report marks a cause as logged, and returns the function say, which logs the cause. The function say does nothing if an earlier outage
// logged the same cause a moment ago. The caller holds o.mu.
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

// check reports an outage in the log again and again until the outage is over.
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
	case len(o.locks) == 0 && quiet >= repeatAfter: // there are no attempts any more, for example because another node leads
		say = o.over("redis is no longer retried: this node needs no answer from it now", o.failed)
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

// over ends the outage. It returns the function say, which logs the end. If the start of the outage was not logged, say does nothing. The
// caller holds o.mu.
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

// Close stops the log lines about outages.
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
