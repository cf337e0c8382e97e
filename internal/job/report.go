package job

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// again is after how long a text that keeps coming is worth saying again.
const again = time.Minute

// quiet keeps a job that is due every few seconds from filling the log with one and
// the same line.
type quiet struct {
	text string
	at   time.Time // when it was logged
}

// level is the level for a text: loud if it is news, Debug if it is not.
func (q *quiet) level(text string, loud zapcore.Level, now time.Time) zapcore.Level {
	if text == q.text && now.Sub(q.at) < again {
		return zapcore.DebugLevel
	}
	q.text, q.at = text, now
	return loud
}

// trouble is a job's runs that failed in a row. Several may end at a time.
type trouble struct {
	mu sync.Mutex
	quiet
	failures int
	logged   bool // one of them
}

// reporter logs and counts what has become of runs and slots. It may be used by several goroutines,
// but for what a place has.
type reporter struct {
	ctx     context.Context // of the term
	log     *zap.Logger
	cfg     *Config
	orphans tally // runs that an earlier leader has lost
	cut     tally // runs that the end of the term has ended
}

// loud is the level for a line on what an error has done to a job: Debug if the same error
// does it to all of them, which is logged once.
func (r *reporter) loud(level zapcore.Level, err error) zapcore.Level {
	if err != nil && r.cfg.Shared(err) {
		return zapcore.DebugLevel
	}
	return level
}

// run logs how a run ended, and with what error its work.
func (r *reporter) run(t *trouble, rec Record, err error) {
	fields := runFields(rec.Run,
		zap.String("trigger", string(rec.Trigger)),
		zap.Duration("took", rec.Finished.Sub(rec.Started)),
		zap.Int64("rows", rec.Result.Rows))
	if rec.Pauses {
		r.log.Error("the job is paused until an operator resumes it", append(fields, zap.String("error", rec.Error))...)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch rec.State {
	case StateSucceeded:
		if t.logged {
			r.log.Info("the job succeeds again", append(fields, zap.Int("failures", t.failures))...)
		} else {
			r.log.Debug("the run succeeded", fields...)
		}
		t.quiet, t.failures, t.logged = quiet{}, 0, false
	case StateCancelled:
		level := zapcore.InfoLevel
		if r.ctx.Err() != nil {
			level = zapcore.DebugLevel
			r.cut.add(rec.Job, rec.Error)
		}
		r.log.Log(level, "the run was cancelled", append(fields, zap.String("error", rec.Error))...)
	default:
		t.failures++
		level := zapcore.DebugLevel
		if rec.State == StateFailed && r.cfg.Shared(err) {
			r.cfg.OnAttempt(rec.Job, err)
		} else {
			level, t.logged = t.level(rec.Error, zapcore.WarnLevel, time.Now()), true
		}
		r.log.Log(level, "the run failed", append(fields,
			zap.String("state", string(rec.State)), zap.Int("failures", t.failures), zap.String("error", rec.Error))...)
	}
}

// reportMissed logs and counts slots that are not run.
func (r *reporter) reportMissed(p *place, m Missed, refused error) {
	r.cfg.OnMissed(m)
	loud, text := zapcore.WarnLevel, "slots were not run"
	switch {
	case m.nothingKnown():
		loud, text = zapcore.DebugLevel, "nothing is known of the job from before; it is new, or the ledger has lost its data"
	case m.Reason != ReasonLate && m.Reason != ReasonLedger:
		loud = zapcore.InfoLevel // expected of a long run, of every failover, logged already, or wanted
	}
	fields := []zap.Field{
		zap.String("job", m.Job), zap.String("reason", string(m.Reason)),
		zap.Int("slots", m.Count), zap.Time("slot", m.Slot),
	}
	if m.Err != nil {
		fields = append(fields, zap.Error(m.Err))
	}
	why := m.Err
	if why == nil && m.Reason == ReasonLedger {
		why = refused // it has waited for one that the ledger did not take
	}
	if loud = r.loud(loud, why); loud > zapcore.DebugLevel {
		loud = p.misses.level(string(m.Reason), loud, time.Now())
	}
	r.log.Log(loud, text, fields...)
}

// lost logs a lost run that is on record, or cannot be. It reports whether it is the first of some that reportLost
// logs together.
func (r *reporter) lost(rec Record, rerun bool, err error) bool {
	if err != nil {
		r.log.Log(r.loud(zapcore.WarnLevel, err), "cannot record that a run was lost with its leader",
			runFields(rec.Run, zap.Error(err))...)
		return false
	}
	r.log.Debug("a run was lost with its leader", runFields(rec.Run, zap.Bool("rerun", rerun), zap.String("error", rec.Error))...)
	first := r.orphans.add(rec.Job, rec.Error)
	r.cfg.OnFinish(rec)
	return first
}

func (r *reporter) say(p *place, l logLine) {
	level := r.loud(l.level, l.err)
	if l.seldom {
		level = p.misses.level(l.text, level, time.Now())
	}
	r.log.Log(level, l.text, l.fields...)
}
