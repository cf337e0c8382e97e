package job

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
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

// session is one term of a Runner. One goroutine, the loop, owns all of it; runs
// have a goroutine each, which the loop starts, and waits for through ended.
type session struct {
	*Runner
	term Term
	log  *zap.Logger

	ctx  context.Context // ends with the term; its cause is told to the runs
	stop context.CancelCauseFunc

	queue   queue
	entries []*entry
	start   time.Time // slots up to here are for catching up
	busy    int       // runs in flight
	ended   chan ending
	orders  chan order
	last    chan map[string]time.Time
	asking  sync.WaitGroup // for last
	fatal   error          // why the term must end; nil while it need not
}

// ending is what a run's goroutine leaves to the loop.
type ending struct {
	entry     *entry
	run       Run
	claimed   bool
	unclaimed error // why the slot is given up
	lasted    time.Duration
	fatal     error // why the term must end
}

func (r *Runner) newSession(ctx context.Context, term Term, jobs []Job) *session {
	s := &session{
		Runner: r,
		term:   term,
		log:    r.cfg.Logger.With(zap.String("node_id", term.NodeID), zap.Int64("epoch", term.Epoch)),
		start:  wallNow(),
		ended:  make(chan ending),
		orders: make(chan order),
		last:   make(chan map[string]time.Time, 1),
	}
	s.ctx, s.stop = context.WithCancelCause(ctx)
	for _, j := range jobs {
		e := &entry{job: j, next: j.Schedule.Next(s.start)}
		if e.always() {
			e.next = s.start
		}
		s.entries = append(s.entries, e)
		s.enqueue(e)
	}
	return s
}

func (s *session) run() error {
	s.asking.Go(s.askLastSlots)
	defer s.asking.Wait()
	defer s.stop(nil)
	timer := time.NewTimer(0)
	defer timer.Stop()
	looked := time.Now()
	for s.ctx.Err() == nil {
		looked = s.lookAtClock(looked)
		s.startDue()
		timer.Reset(s.untilNext())
		select {
		case <-s.ctx.Done():
		case <-timer.C:
		case last := <-s.last:
			s.catchUp(last)
		case end := <-s.ended:
			s.settle(end)
		case o := <-s.orders:
			s.obey(o)
		}
	}
	s.drain()
	return s.fatal
}

// lookAtClock notes progress and tells when the wall clock has jumped.
func (s *session) lookAtClock(before time.Time) time.Time {
	now := time.Now()
	s.noteProgress(now)
	if by, jumped := clockJump(now.Round(0).Sub(before.Round(0)), now.Sub(before)); jumped {
		s.log.Warn("the wall clock has jumped: it was set, or the machine was suspended; "+
			"slots that were jumped over are missed, and after a jump back jobs wait until it has caught up",
			zap.Duration("by", by))
	}
	return now
}

// startDue deals with every slot that has come due by the wall clock.
func (s *session) startDue() {
	now := wallNow()
	for len(s.queue) > 0 && !now.Before(s.queue[0].next) {
		e := s.queue[0]
		heap.Pop(&s.queue)
		if e.always() {
			s.begin(e, Run{Slot: now, Trigger: TriggerSchedule}, untold) // settle has it started again
			continue
		}
		p := planDue(e.job, e.next, now)
		e.next = p.next
		s.enqueue(e)
		s.carryOut(e, p)
	}
}

func (s *session) untilNext() time.Duration {
	if len(s.queue) == 0 {
		return maxSleep
	}
	return min(max(0, s.queue[0].next.Sub(wallNow())), maxSleep)
}

// carryOut starts what a plan says. While the job is busy it starts nothing: behind a
// run the slot is missed; behind a claim that the ledger has yet to answer the latest
// slot waits, in case the earlier one has to be given up.
func (s *session) carryOut(e *entry, p plan) {
	s.miss(e, p.missed)
	switch {
	case p.slot.IsZero():
	case !e.busy:
		s.begin(e, Run{Slot: p.slot, Trigger: p.trigger}, untold)
	case e.claimed.Load():
		s.miss(e, Missed{Job: e.job.Name, Reason: ReasonOverlap, Count: 1, Slot: p.slot})
	default:
		s.giveUpWaiting(e, ReasonLedger)
		e.waiting = p
	}
}

// giveUpWaiting counts the slot that waits behind another, if any, as missed.
func (s *session) giveUpWaiting(e *entry, reason Reason) {
	if slot := e.waiting.slot; !slot.IsZero() {
		s.miss(e, Missed{Job: e.job.Name, Reason: reason, Count: 1, Slot: slot})
	}
	e.waiting = plan{}
}

// untold is for runs whose claim nobody waits for.
func untold(error) {}

// begin hands a slot to a goroutine of its own, which claims it before anything else:
// a ledger that does not answer must not hold the other jobs up. It tells how the
// claim went. A manual run comes with the ID that it was asked for by.
func (s *session) begin(e *entry, run Run, tell func(error)) {
	run.Job, run.Attempt, run.Term = e.job.Name, 1, s.term
	run.Slot = run.Slot.Truncate(time.Millisecond) // as the ledger has it
	e.busy = true
	e.claimed.Store(false)
	s.busy++
	if run.Trigger != TriggerManual {
		e.tried = true
		var err error
		if run.ID, err = s.newID(); err != nil {
			s.settle(ending{entry: e, run: run, unclaimed: fmt.Errorf("make a run ID: %w", err)})
			return
		}
	}
	var ctx context.Context
	ctx, e.cancel = context.WithCancelCause(s.ctx)
	go s.execute(ctx, e, run, tell)
}

// settle takes a run's ending.
func (s *session) settle(end ending) {
	e := end.entry
	s.busy--
	e.busy = false
	if e.cancel != nil {
		e.cancel(nil)
	}
	if end.fatal != nil && s.ctx.Err() == nil {
		s.fatal = end.fatal
		s.stop(end.fatal)
	}
	s.missed(e, end)
	p := e.waiting
	switch {
	case s.ctx.Err() != nil:
	case e.always():
		s.again(e, end.lasted)
	case p.slot.IsZero():
	case end.claimed:
		s.giveUpWaiting(e, ReasonOverlap)
	default:
		e.waiting = plan{}
		s.begin(e, Run{Slot: p.slot, Trigger: p.trigger}, untold)
	}
}

// missed tells of the slot that a run did not get.
func (s *session) missed(e *entry, end ending) {
	switch paused := errors.Is(end.unclaimed, ErrPaused); {
	case end.unclaimed == nil || end.run.Trigger == TriggerManual: // whoever asked for that has been told
	case !paused:
		s.miss(e, Missed{Job: e.job.Name, Reason: ReasonLedger, Count: 1, Slot: end.run.Slot, Err: end.unclaimed})
	case e.always():
		e.paused = true
	default:
		s.miss(e, Missed{Job: e.job.Name, Reason: ReasonPaused, Count: 1, Slot: end.run.Slot, Err: end.unclaimed})
	}
}

// drain waits for every run. Nothing here can make it shorter: they have been told.
func (s *session) drain() {
	ticker := time.NewTicker(lingering)
	defer ticker.Stop()
	told := false
	for s.busy > 0 {
		s.noteProgress(time.Now())
		select {
		case end := <-s.ended:
			s.settle(end)
		case <-ticker.C:
			if !told {
				s.tellLingering()
			}
			told = true
		}
	}
}

func (s *session) tellLingering() {
	for _, a := range s.Running() {
		s.log.Warn("the term has ended and waits for this run to return",
			zap.String("job", a.Job), zap.String("run_id", a.ID), zap.Error(context.Cause(s.ctx)))
	}
}

// dequeue takes a job out of the queue, if it is there.
func (s *session) dequeue(e *entry) {
	if i := slices.Index(s.queue, e); i >= 0 {
		heap.Remove(&s.queue, i)
	}
}

// enqueue adds a job to the queue, if it is ever due.
func (s *session) enqueue(e *entry) {
	if e.next.IsZero() {
		s.log.Error("the job's schedule has no further slot; it will not run again", zap.String("job", e.job.Name))
		return
	}
	heap.Push(&s.queue, e)
	s.noteNext(e.job.Name, e.next)
}
