package job

import (
	"context"
	"math"
	"time"

	"go.uber.org/zap"
)

// maxRoom is the number of runs that may begin if there is no limit. It is only half of math.MaxInt, because each run that ends during an
// event adds one.
const maxRoom = math.MaxInt / 2

// hand passes an event to a job's machine, and executes the commands that the machine then requests.
func (s *session) hand(p *scheduledJob, event func(*machine)) {
	p.eventContext = s.moment()
	event(p.machine)
	commands := p.commands
	p.commands = nil
	for _, c := range commands {
		s.perform(p, c)
	}
	s.setPlace(p)
}

func (s *session) moment() eventContext {
	at := eventContext{now: s.now(), clock: time.Now(), room: maxRoom, over: s.ctx.Err() != nil}
	if s.limit > 0 {
		at.room = s.limit - s.occupied // negative after an update that lowered the limit
	}
	return at
}

func (s *session) perform(p *scheduledJob, c command) {
	switch c := c.(type) {
	case startRun:
		s.launch(p, c.f)
	case cancelRun:
		c.f.execution.cancel(c.cause)
	case withdrawClaim:
		c.f.execution.withdraw()
	case forgetRun:
		s.forgetRun(c.f)
	case recordMissed:
		if !s.outbox.miss(c.missed, func(missed Missed, err error) {
			s.hand(p, func(m *machine) { m.missRecorded(missed, err) })
		}) {
			p.joined()
		}
	case recordEnd:
		s.outbox.record(c.rec, nil)
	case recordLost:
		s.outbox.record(c.rec, func(err error) { s.orphanRecorded(c, err) })
	case reportMissed:
		if s.reports.reportMissed(p, c.missed, c.refused) {
			time.AfterFunc(gatherFor, func() { s.post(s.reports.reportMisses) })
		}
	case reportLost:
		s.log.Warn("a run was lost: its claim was granted, but the answer came too late",
			runFields(c.rec.Run, zap.String("error", c.rec.Error))...)
		s.cfg.OnFinish(c.rec)
	case answerTo:
		answer(c.to, c.err)
	case endTerm:
		s.fail(c.err)
	case compareClocks:
		s.compareClocks(true)
	case forgetJob:
		s.forgetPlace(p)
	case logLine:
		s.reports.say(p, c)
	}
}

// launch starts the goroutine of a run.
func (s *session) launch(p *scheduledJob, f *activeRun) {
	x := &execution{s: s, f: f, place: p, limiter: s.claimLimiter, acting: true}
	if f.job.Spawns {
		x.limiter = s.processLimiter
	}
	x.ctx, x.cancel = context.WithCancelCause(s.ctx)
	x.asks, x.withdraw = context.WithCancel(s.ctx)
	f.execution = x
	s.goroutines++
	s.acting++
	s.noteOpen(f.run)
	if f.counted {
		s.occupied++
	}
	if s.idle != nil && f.job.MayIdle && f.item.slotted() {
		s.idleCandidates = append(s.idleCandidates, x)
		return
	}
	go x.run()
}

// orphanRecorded reports a lost run after the outbox has recorded it, and lets the job's machine continue.
func (s *session) orphanRecorded(c recordLost, err error) {
	if s.reports.lost(c.rec, c.rerun, err) {
		time.AfterFunc(gatherFor, func() { s.post(s.reports.reportLost) })
	}
	if p := s.jobs[c.rec.Job]; p != nil && c.rerun {
		s.hand(p, func(m *machine) { m.orphanClosed(c.rec, err) })
	}
}

// rest notes that the work of a run has returned, so that the run can no longer change anything.
func (s *session) rest(x *execution) {
	if x.acting {
		x.acting = false
		s.acting--
	}
	s.answerClosing()
}

// forgetRun removes a run that has ended.
func (s *session) forgetRun(f *activeRun) {
	f.execution.cancel(nil)
	f.execution.withdraw()
	s.rest(f.execution)
	s.noteClosed(f.run)
	s.goroutines--
	if f.counted {
		s.occupied--
	}
}

// startDue handles every job that is due.
func (s *session) startDue() {
	now := s.now()
	var due []*scheduledJob
	for len(s.queue) > 0 && !now.Before(s.queue[0].at) {
		p := s.queue[0]
		s.queue.set(p, time.Time{})
		due = append(due, p)
	}
	for _, p := range due {
		s.hand(p, (*machine).handleDue)
	}
}

// admit begins runs that wait because of MaxConcurrent, in the order of their due times.
func (s *session) admit() {
	for len(s.waitForRoom) > 0 && s.ctx.Err() == nil && (s.limit == 0 || s.occupied < s.limit) {
		var first *scheduledJob
		for p := range s.waitForRoom {
			if first == nil || p.roomless.Before(first.roomless) || p.roomless.Equal(first.roomless) && p.job.Name < first.job.Name {
				first = p
			}
		}
		s.hand(first, (*machine).advance)
	}
}

// setPlace updates a job's place in the heap, and in the set of jobs that wait for room, after an event has changed the job.
func (s *session) setPlace(p *scheduledJob) {
	if s.ctx.Err() != nil || p.forgotten {
		return
	}
	if delete(s.waitForRoom, p); !p.roomless.IsZero() {
		s.waitForRoom[p] = struct{}{}
	}
	s.queue.set(p, p.nextWake())
	if p.removed || p.closing || p.next.IsZero() {
		s.noteNext(p.job.Name, time.Time{})
		return
	}
	s.noteNext(p.job.Name, p.due(p.next))
}

// forgetPlace removes a job that is no longer configured and has no runs left.
func (s *session) forgetPlace(p *scheduledJob) {
	s.queue.set(p, time.Time{})
	delete(s.waitForRoom, p)
	delete(s.jobs, p.job.Name)
	s.noteNext(p.job.Name, time.Time{})
}
