package job

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

const (
	// maxSleep is how soon the loop looks at the wall clock again: a clock that was
	// set, or a machine that woke up, is noticed within it.
	maxSleep = 10 * time.Second
	// lingering is how long a drain may take before the log says who holds it up.
	lingering = time.Second
)

// session is one term of a Runner. One goroutine, the loop, owns all of it. Runs have
// a goroutine each, and so have the questions to the ledger; what they have to say is
// a function that the loop calls.
type session struct {
	*Runner
	term Term
	log  *zap.Logger

	ctx    context.Context // ends with the term; its cause is told to the runs
	stop   context.CancelCauseFunc
	events chan func()               // called by the loop
	fatal  error                     // why the term must end; nil while it need not
	over   atomic.Pointer[time.Time] // when the term ended; nil before

	entries  map[string]*entry
	queue    queue
	start    time.Time            // slots up to here are for catching up
	flying   int                  // runs that have a goroutine
	limit    int                  // how many may go on at a time; 0: any number
	occupied int                  // of them
	crowd    map[*entry]time.Time // jobs that wait for room, and since when they are due

	clerk  *clerk
	asking sync.WaitGroup // how jobs stand
}

func (r *Runner) newSession(ctx context.Context, term Term, w Workload) *session {
	s := &session{
		Runner:  r,
		term:    term,
		log:     r.cfg.Logger.With(zap.String("node_id", term.NodeID), zap.Int64("epoch", term.Epoch)),
		events:  make(chan func()),
		entries: make(map[string]*entry, len(w.Jobs)),
		start:   r.nowMillis(),
		limit:   w.MaxConcurrent,
		crowd:   make(map[*entry]time.Time),
	}
	s.ctx, s.stop = context.WithCancelCause(ctx)
	context.AfterFunc(s.ctx, func() { s.over.Store(new(time.Now())) })
	s.clerk = s.newClerk()
	for _, j := range w.Jobs {
		s.add(j, s.start)
	}
	return s
}

// add takes a job up, from a time on.
func (s *session) add(j Job, from time.Time) {
	e := &entry{job: j, index: -1}
	s.entries[j.Name] = e
	e.schedule(from)
	s.requeue(e)
}

// schedule has the slots of a job come from a time on.
func (e *entry) schedule(from time.Time) {
	e.prev, e.ahead = time.Time{}, time.Time{}
	if e.always() {
		e.next = from
		return
	}
	e.base = e.nominal(from)
	e.next = e.job.Schedule.Next(e.base)
}

func (s *session) run() error {
	names := make([]string, 0, len(s.entries))
	for name := range s.entries {
		names = append(names, name)
	}
	s.asking.Go(func() { s.askStandings(names, false) })
	defer s.asking.Wait()
	defer s.stop(nil)
	go s.clerk.run()
	timer := time.NewTimer(0)
	defer timer.Stop()
	seen := looked{clock: time.Now(), wall: s.now()}
	for s.ctx.Err() == nil {
		seen = s.lookAtClock(seen)
		s.startDue()
		timer.Reset(s.untilNext())
		select {
		case <-s.ctx.Done():
		case <-timer.C:
		case do := <-s.events:
			do()
		}
	}
	s.drain()
	return s.fatal
}

func (s *session) untilNext() time.Duration {
	if len(s.queue) == 0 {
		return maxSleep
	}
	return min(max(0, s.queue[0].at.Sub(s.now())), maxSleep)
}

// tell has the loop call something, unless the term ends.
func (s *session) tell(do func()) {
	select {
	case s.events <- do:
	case <-s.ctx.Done():
	}
}

// drain waits for every run, and then for the clerk. Nothing here can make it shorter:
// they have been told.
func (s *session) drain() {
	s.stop(nil)
	for _, e := range s.entries {
		for _, it := range e.line {
			answer(it.reply, ErrNotLeader)
		}
	}
	ticker := time.NewTicker(lingering)
	defer ticker.Stop()
	told := false
	for done := s.clerk.gone; ; {
		if s.flying == 0 {
			s.clerk.close()
		}
		s.noteProgress(time.Now())
		select {
		case do := <-s.events:
			do()
		case <-done:
			if s.flying == 0 {
				return
			}
			done = nil // its time is over, and runs go on
		case <-ticker.C:
			if !told {
				s.tellLingering()
			}
			told = true
		}
		if done == nil && s.flying == 0 {
			return
		}
	}
}

func (s *session) tellLingering() {
	for _, a := range s.Running() {
		s.log.Warn("the term has ended and waits for this run to return",
			zap.String("job", a.Job), zap.String("run_id", a.ID), zap.Error(context.Cause(s.ctx)))
	}
}

// forgetEntry takes a job off that is no longer configured, and whose runs have ended.
func (s *session) forgetEntry(e *entry) {
	s.queue.set(e, time.Time{})
	delete(s.crowd, e)
	delete(s.entries, e.job.Name)
	s.noteNext(e.job.Name, time.Time{})
}
