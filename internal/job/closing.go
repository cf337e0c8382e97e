package job

import (
	"context"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// EndFirst ends the runs of all jobs with EndsFirst, before the term ends, and returns when
// they have ended. The other jobs go on meanwhile. The ended jobs start nothing more and take no
// orders: their slots are the next leader's. It returns earlier if ctx ends, or without a term.
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
	for _, f := range m.flights {
		if !f.answered {
			m.do(withdrawClaim{f}) // an ungranted slot is the next leader's
			continue
		}
		m.cancelRun(f, why)
		m.say(zapcore.InfoLevel, nil, "stepping down when this run has ended; flushes continue until then",
			runFields(f.run, zap.Error(why))...)
	}
}

// answerClosing answers EndFirst once no run of its jobs is left.
func (s *session) answerClosing() {
	if s.closing == nil {
		return
	}
	for _, p := range s.jobs {
		for _, f := range p.flights {
			if x := f.execution; p.closing && x != nil && x.acting {
				return
			}
		}
	}
	answer(s.closing, nil)
}
