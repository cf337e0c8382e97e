package job

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// again is the minimum time between two log lines with the same text.
const again = time.Minute

// logLimiter suppresses repetitions of one log line.
type logLimiter struct {
	text string
	at   time.Time // when the text was logged
}

// level returns the log level for a text: the level in the argument loud if the text is new, otherwise Debug.
func (q *logLimiter) level(text string, loud zapcore.Level, now time.Time) zapcore.Level {
	if text == q.text && now.Sub(q.at) < again {
		return zapcore.DebugLevel
	}
	q.text, q.at = text, now
	return loud
}

// failureLog counts a job's consecutive failures. Several runs may end at the same time.
type failureLog struct {
	mu sync.Mutex
	logLimiter
	failures int
	logged   bool // one of these failures was logged
}

// reporter logs and counts results of runs and missed slots. Several goroutines may use it, but only the loop may pass it a scheduledJob.
type reporter struct {
	ctx     context.Context // of the term
	log     *zap.Logger
	cfg     *Config
	orphans groupedRuns // runs that an earlier leader has lost
	cut     groupedRuns // runs that the end of the term has cancelled
	missed  map[Reason]*groupedMisses
}

// loud returns the log level for an error of one job: it is Debug if the error concerns all jobs, because such an error is logged only
// once.
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

// reportMissed counts slots that are not run, and gathers them for the log. It reports whether these slots are the first since reportMisses
// was called.
func (r *reporter) reportMissed(p *scheduledJob, m Missed, refused error) bool {
	r.cfg.OnMissed(m)
	loud, text := zapcore.WarnLevel, "slots were not run"
	switch {
	case m.nothingKnown():
		loud, text = zapcore.DebugLevel, "the ledger has no state of the job: the job is new, or the ledger has lost its data"
	case m.Reason != ReasonLate && m.Reason != ReasonLedger:
		loud = zapcore.InfoLevel // a long run, a failover or an operator's order explains the miss, or its cause is already logged
	}
	why := m.Err
	if why == nil && m.Reason == ReasonLedger {
		why = refused // the slot has waited for another slot or record that the ledger did not accept
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

// lost logs a lost run, or logs that the loss cannot be recorded. It reports whether this run is the first of several runs that
// reportLost logs in one line.
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
