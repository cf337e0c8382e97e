package job

import (
	"context"
	"math"
	"time"

	"go.uber.org/zap"
)

// maxRoom is the room without a limit. Runs that end within one event add to it.
const maxRoom = math.MaxInt / 2

// hand gives an event to a job's machine and carries out its commands.
func (s *session) hand(p *scheduledJob, event func(*machine)) {
	p.moment = s.moment()
	event(p.machine)
	commands := p.commands
	p.commands = nil
	for _, c := range commands {
		s.perform(p, c)
	}
	s.setPlace(p)
}

func (s *session) moment() moment {
	at := moment{now: s.now(), clock: time.Now(), room: maxRoom, over: s.ctx.Err() != nil}
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
		s.log.Warn("a run was lost: its claim was granted, and the answer did not come in time",
			runFields(c.rec.Run, zap.String("error", c.rec.Error))...)
		s.cfg.OnFinish(c.rec)
	case answerTo:
		answer(c.to, c.err)
	case endTerm:
		s.fail(c.err)
	case clockDoubt:
		s.compareClocks(true)
	case forgetJob:
		s.forgetPlace(p)
	case logLine:
		s.reports.say(p, c)
	}
}

// launch starts the goroutine of a run.
func (s *session) launch(p *scheduledJob, f *flight) {
	x := &execution{s: s, f: f, place: p, queue: s.turns, acting: true}
	if f.job.Spawns {
		x.queue = s.starts
	}
	x.ctx, x.cancel = context.WithCancelCause(s.ctx)
	x.asks, x.withdraw = context.WithCancel(s.ctx)
	f.execution = x
	s.flying++
	s.acting++
	if f.counted {
		s.occupied++
	}
	if s.idle != nil && f.job.MayIdle && f.item.slotted() {
		s.early = append(s.early, x)
		return
	}
	go x.run()
}

// orphanRecorded reports a lost run and lets its machine continue.
func (s *session) orphanRecorded(c recordLost, err error) {
	if s.reports.lost(c.rec, c.rerun, err) {
		time.AfterFunc(gatherFor, func() { s.post(s.reports.reportLost) })
	}
	if p := s.jobs[c.rec.Job]; p != nil && c.rerun {
		s.hand(p, func(m *machine) { m.orphanClosed(c.rec, err) })
	}
}

// rest notes that a run can no longer change anything.
func (s *session) rest(x *execution) {
	if x.acting {
		x.acting = false
		s.acting--
	}
	s.answerClosing()
}

// forgetRun removes a run that has ended.
func (s *session) forgetRun(f *flight) {
	f.execution.cancel(nil)
	f.execution.withdraw()
	s.rest(f.execution)
	s.flying--
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

// admit begins runs that wait for room, in the order in which they were due.
func (s *session) admit() {
	for len(s.crowd) > 0 && s.ctx.Err() == nil && (s.limit == 0 || s.occupied < s.limit) {
		var first *scheduledJob
		for p := range s.crowd {
			if first == nil || p.roomless.Before(first.roomless) || p.roomless.Equal(first.roomless) && p.job.Name < first.job.Name {
				first = p
			}
		}
		s.hand(first, (*machine).advance)
	}
}

// setPlace updates a job's place in the queues after a change.
func (s *session) setPlace(p *scheduledJob) {
	if s.ctx.Err() != nil || p.forgotten {
		return
	}
	if delete(s.crowd, p); !p.roomless.IsZero() {
		s.crowd[p] = struct{}{}
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
	delete(s.crowd, p)
	delete(s.jobs, p.job.Name)
	s.noteNext(p.job.Name, time.Time{})
}
