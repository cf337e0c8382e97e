package job

import (
	"context"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// EndFirst ends the runs of the jobs that end first, for a term that is about to end, and
// returns when they have ended; with them gone the others need not wait for them. The jobs
// start nothing more, and no order is taken: their slots are the next leader's. It returns
// earlier if ctx ends, or there is no term.
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
	for _, it := range m.line {
		m.answer(it.reply, ErrNotLeader)
	}
	for _, f := range m.flights {
		if !f.answered {
			m.do(withdrawClaim{f}) // not granted it is the next leader's
			continue
		}
		m.cancelRun(f, why)
		m.say(zapcore.InfoLevel, nil, "the lead is given up when this run has ended; flushes go on until then",
			runFields(f.run, zap.Error(why))...)
	}
}

// answerClosing answers whoever waits for the jobs that end first, once none of their runs goes on.
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
