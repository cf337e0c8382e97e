package job

import (
	"context"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// EndFirst ends the runs of all jobs with EndsFirst before the term ends, and returns when these runs have ended. The other jobs continue.
// The jobs with EndsFirst start nothing more and accept no orders of operators, because their next slots belong to the next leader.
// EndFirst returns earlier if ctx ends, or if there is no term.
func (r *Runner) EndFirst(ctx context.Context, why error) error {
	return r.order(ctx, func(s *session, reply chan<- error) { s.endFirst(why, reply) })
}

func (s *session) endFirst(why error, ended chan<- error) {
	s.closing = ended
	for _, p := range s.jobs {
		if p.job.EndsFirst {
			s.hand(p, func(m *machine) { m.endFirst(why) })
		}
	}
	s.answerClosing()
}

func (m *machine) endFirst(why error) {
	m.closing, m.roomless = true, time.Time{}
	for _, it := range m.queued {
		m.answer(it.reply, ErrNotLeader)
	}
	for _, f := range m.active {
		if !f.answered {
			m.do(withdrawClaim{f}) // an ungranted slot belongs to the next leader
			continue
		}
		m.cancelRun(f, why)
		m.say(zapcore.InfoLevel, nil, "stepping down when this run has ended; flushes continue until then",
			runFields(f.run, zap.Error(why))...)
	}
}

// answerClosing lets EndFirst return when no run of the jobs with EndsFirst is left.
func (s *session) answerClosing() {
	if s.closing == nil {
		return
	}
	for _, p := range s.jobs {
		for _, f := range p.active {
			if x := f.execution; p.closing && x != nil && x.acting {
				return
			}
		}
	}
	answer(s.closing, nil)
}
