package job

import (
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// miss tells of slots that are not run. While a claim of the job is not answered they
// are held back: what is recorded as missed no later term looks at again, nor at any
// slot before it, and that claim's slot may be one.
func (s *session) miss(e *entry, m Missed) {
	if m.Count > 0 || m.Reason == ReasonUnknown || m.mark() {
		e.held = append(e.held, m)
	}
	s.release(e)
}

// release tells of what was held back, the earliest slots first; not before it is known
// what was before.
func (s *session) release(e *entry) {
	if e.holding > 0 || len(e.held) == 0 || !e.known {
		return
	}
	if f := e.asking(); f != nil && f.item.slotted() {
		return
	}
	held := e.held
	e.held = nil
	slices.SortStableFunc(held, func(a, b Missed) int { return a.First.Compare(b.First) })
	for _, m := range held {
		if m.Count > 0 {
			e.dealt = latest(e.dealt, m.Slot)
		}
		if !m.byClock() && !m.mark() {
			s.tellMissed(e, m)
		}
		if !s.clerk.miss(m, func(m Missed, err error) { s.missRecorded(e, m, err) }) {
			continue
		}
		if e.letters++; e.letters == 1 {
			e.oldest = time.Now()
		}
	}
}

// byClock reports whether only this node's clock says that the slots have passed. They
// are told of when the ledger has agreed: its own clock may say that they are to come.
func (m Missed) byClock() bool {
	return m.Reason == ReasonLate || m.Reason == ReasonNoLeader || m.Reason == ReasonUnknown
}

// mark reports whether it only says from when on the job has slots: nothing was missed.
func (m Missed) mark() bool { return m.Reason == reasonNone }

// missRecorded takes the ledger's answer.
func (s *session) missRecorded(e *entry, m Missed, err error) {
	e.letters--
	e.oldest = time.Now()
	if errors.Is(err, ErrNotLeader) {
		s.fail(err)
		return
	}
	switch {
	case s.entries[m.Job] != e || m.mark(): // gone, or nothing of it was missed
	case errors.Is(err, ErrAhead):
		s.goBack(e, m.First)
	case m.byClock():
		s.tellMissed(e, m)
	}
	if s.entries[m.Job] == e {
		s.advance(e)
	}
}

// recording reports whether misses of a job are not on record yet. A slot that is claimed
// before them would hide them from every later term, if this one ended now. But what the
// ledger will not have at all must not stop the job.
func (e *entry) recording() bool {
	return len(e.held) > 0 || e.letters > 0 && time.Since(e.oldest) < patience
}

// tellMissed tells the log and whoever counts.
func (s *session) tellMissed(e *entry, m Missed) {
	s.cfg.OnMissed(m)
	loud, text := zapcore.WarnLevel, "slots were not run"
	switch m.Reason {
	case ReasonOverlap, ReasonNoLeader, ReasonPaused, ReasonConcurrency:
		loud = zapcore.InfoLevel // expected of a long run, of every failover, told already, or wanted
	case ReasonUnknown:
		loud, text = zapcore.DebugLevel, "nothing is known of the job from before; it is new, or the ledger has lost its data"
	}
	fields := []zap.Field{
		zap.String("job", m.Job), zap.String("reason", string(m.Reason)),
		zap.Int("slots", m.Count), zap.Time("slot", m.Slot),
	}
	if m.Err != nil {
		fields = append(fields, zap.Error(m.Err))
	}
	s.log.Log(e.misses.level(string(m.Reason), loud, time.Now()), text, fields...)
}
