package job

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// again is the interval at which a repeated text is logged again.
const again = time.Minute

// logLimiter suppresses repetitions of one log line.
type logLimiter struct {
	text string
	at   time.Time // when it was logged
}

// level is the log level for a text: loud if it is new, else Debug.
func (q *logLimiter) level(text string, loud zapcore.Level, now time.Time) zapcore.Level {
	if text == q.text && now.Sub(q.at) < again {
		return zapcore.DebugLevel
	}
	q.text, q.at = text, now
	return loud
}

// failureLog counts a job's consecutive failures. Several runs may end at a time.
type failureLog struct {
	mu sync.Mutex
	logLimiter
	failures int
	logged   bool // one of them
}

// reporter logs and counts results of runs and missed slots. It is safe for several goroutines,
// except for the fields of a scheduledJob.
type reporter struct {
	ctx     context.Context // of the term
	log     *zap.Logger
	cfg     *Config
	orphans tally // runs that an earlier leader has lost
	cut     tally // runs that the end of the term has ended
	missed  map[Reason]*missTally
}

// loud is the log level for an error of one job: Debug if the error concerns all jobs, which is
// logged once.
func (r *reporter) loud(level zapcore.Level, err error) zapcore.Level {
	if err != nil && r.cfg.Shared(err) {
		return zapcore.DebugLevel
	}
	return level
}

// run logs the result of a run.
func (r *reporter) run(t *failureLog, rec Record, err error) {
	fields := runFields(rec.Run,
		zap.String("trigger", string(rec.Trigger)),
		zap.Duration("took", rec.Finished.Sub(rec.Started)),
		zap.Int64("rows", rec.Result.Rows))
	fields = append(fields, r.cfg.LogFields(rec.Run)...)
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
		t.logLimiter, t.failures, t.logged = logLimiter{}, 0, false
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

// reportMissed counts slots that are not run, and gathers them for the log. It reports whether they are the first that
// reportMisses logs.
func (r *reporter) reportMissed(p *scheduledJob, m Missed, refused error) bool {
	r.cfg.OnMissed(m)
	loud, text := zapcore.WarnLevel, "slots were not run"
	switch {
	case m.nothingKnown():
		loud, text = zapcore.DebugLevel, "the ledger has no state of the job: the job is new, or the ledger has lost its data"
	case m.Reason != ReasonLate && m.Reason != ReasonLedger:
		loud = zapcore.InfoLevel // expected of a long run, of every failover, logged already, or wanted
	}
	why := m.Err
	if why == nil && m.Reason == ReasonLedger {
		why = refused // it has waited for one that the ledger did not take
	}
	if loud = r.loud(loud, why); loud > zapcore.DebugLevel {
		loud = p.missLog.level(string(m.Reason), loud, time.Now())
	}
	if loud > zapcore.DebugLevel {
		return r.gather(m, loud)
	}
	r.log.Debug(text, append([]zap.Field{zap.String("job", m.Job)}, missedFields(m.Reason, m.Count, m.Slot, m.Err)...)...)
	return false
}

// lost logs a lost run, or that it cannot be recorded. It reports whether it is the first of several that reportLost
// logs in one line.
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

func (r *reporter) say(p *scheduledJob, l logLine) {
	level := r.loud(l.level, l.err)
	if l.seldom {
		level = p.missLog.level(l.text, level, time.Now())
	}
	r.log.Log(level, l.text, l.fields...)
}
