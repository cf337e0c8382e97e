package job

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"
)

// maxLetters bounds what waits of one job while the ledger is away.
const maxLetters = 1000

// clerk records what nobody waits for: slots that are not run, and ends of runs that
// could not be recorded at once. It asks again until the term ends, in order for each
// job, and in turn among the jobs, so that what the ledger will not have of one does
// not hold the others up.
type clerk struct {
	s    *session
	ctx  context.Context // ends some time after the term
	gone chan struct{}   // closed when it has stopped

	mu      sync.Mutex
	letters map[string][]*letter // by job
	turn    []string             // jobs that have some
	closing bool
	wake    chan struct{}
}

// letter is something to be recorded: a miss, or the end of a run.
type letter struct {
	miss *Missed
	rec  *Record
	sent bool        // maybe it is recorded: nothing may be added
	done func(error) // called in the loop
}

func (s *session) newClerk() *clerk {
	c := &clerk{s: s, gone: make(chan struct{}), letters: make(map[string][]*letter), wake: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.ctx))
	c.ctx = ctx
	context.AfterFunc(s.ctx, func() {
		timer := time.NewTimer(s.cfg.FinishTimeout)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.gone:
		}
		cancel()
	})
	return c
}

// miss records slots that are not run, and calls done in the loop; unless it has joined
// them to others that wait, of which done tells as well.
func (c *clerk) miss(m Missed, done func(Missed, error)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if waiting := c.letters[m.Job]; len(waiting) > 0 {
		if last := waiting[len(waiting)-1]; last.miss != nil && !last.sent && last.miss.joins(m) {
			last.miss.Slot = m.Slot
			last.miss.Count = min(last.miss.Count+m.Count, maxCounted)
			last.miss.Err = m.Err
			return false
		}
	}
	c.add(m.Job, &letter{miss: &m, done: func(err error) { done(m, err) }})
	return true
}

// joins reports whether another report begins where this one ends.
func (m *Missed) joins(next Missed) bool {
	return m.Reason == next.Reason && m.Count > 0 && !next.After.IsZero() && next.After.Equal(m.Slot)
}

// record records how a run ended.
func (c *clerk) record(rec Record, done func(error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(rec.Job, &letter{rec: &rec, done: done})
}

func (c *clerk) add(job string, l *letter) {
	if len(c.letters[job]) == 0 {
		c.turn = append(c.turn, job)
	}
	c.letters[job] = append(c.letters[job], l)
	if n := len(c.letters[job]); n > maxLetters {
		c.letters[job] = append(c.letters[job][:1], c.letters[job][2:]...) // not the one under way
	}
	c.nudge()
}

func (c *clerk) nudge() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// close has the clerk stop when nothing is left, or its time is over.
func (c *clerk) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
	c.nudge()
}

// run sends letters until it is closed.
func (c *clerk) run() {
	defer close(c.gone)
	failed := 0 // in a row
	for c.ctx.Err() == nil {
		job, l, closing := c.next()
		if l == nil {
			if closing {
				return
			}
			select {
			case <-c.wake:
			case <-c.ctx.Done():
			}
			continue
		}
		err := c.send(l)
		if c.finished(job, l, err) {
			failed = 0
			continue
		}
		if failed++; failed == 1 {
			c.s.log.Debug("cannot record what has become of a job; will try again", zap.String("job", job), zap.Error(err))
		}
		_ = pause(c.ctx, min(retryMin<<min(failed-1, 10), retryMax))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if left := len(c.turn); left > 0 {
		c.s.log.Warn("the term has ended, and the ledger could not be told of all that became of some jobs", zap.Strings("jobs", c.turn))
	}
}

// next is the first letter of the job whose turn it is.
func (c *clerk) next() (string, *letter, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.turn) == 0 {
		return "", nil, c.closing
	}
	job := c.turn[0]
	l := c.letters[job][0]
	l.sent = true
	return job, l, c.closing
}

func (c *clerk) send(l *letter) error {
	ctx, cancel := context.WithTimeout(c.ctx, c.s.cfg.ClaimTimeout)
	defer cancel()
	if l.rec != nil {
		return c.s.ledger.Finish(ctx, *l.rec)
	}
	if now := c.s.nowMillis(); l.miss.Reason == ReasonUnknown && now.Before(l.miss.Slot) {
		l.miss.First, l.miss.Slot = now, now // the clock was ahead when the term began
	}
	return c.s.ledger.Miss(ctx, c.s.term, *l.miss)
}

// finished takes a letter off if the ledger has answered, or else has it wait for the
// job's next turn.
func (c *clerk) finished(job string, l *letter, err error) bool {
	done := err == nil || errors.Is(err, ErrNotLeader) || l.miss != nil && l.miss.Reason != ReasonUnknown && errors.Is(err, ErrAhead)
	if done && l.done != nil {
		c.s.events <- func() { l.done(err) }
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn = c.turn[1:]
	if done {
		c.letters[job] = c.letters[job][1:]
	}
	if len(c.letters[job]) > 0 {
		c.turn = append(c.turn, job)
	} else {
		delete(c.letters, job)
	}
	return done
}
