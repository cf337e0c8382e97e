package job

import (
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
	told time.Time
}

// level is the level for a text: loud if it is news, Debug if it is not.
func (q *quiet) level(text string, loud zapcore.Level, now time.Time) zapcore.Level {
	if text == q.text && now.Sub(q.told) < again {
		return zapcore.DebugLevel
	}
	q.text, q.told = text, now
	return loud
}

// trouble is a job's runs that failed in a row. Several may end at a time.
type trouble struct {
	mu sync.Mutex
	quiet
	failures int
}

// report tells the log how a run ended.
func (s *session) report(t *trouble, rec Record) {
	fields := runFields(rec.Run,
		zap.String("trigger", string(rec.Trigger)),
		zap.Duration("took", rec.Finished.Sub(rec.Started)),
		zap.Int64("rows", rec.Result.Rows))
	if rec.Result.Dead > 0 {
		s.log.Warn("the run put records aside as dead letters", append(fields, zap.Int64("dead", rec.Result.Dead))...)
	}
	if rec.Pauses {
		s.log.Error("the job is paused until an operator resumes it", append(fields, zap.String("error", rec.Error))...)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch rec.State {
	case StateSucceeded:
		if t.failures > 0 {
			s.log.Info("the job succeeds again", append(fields, zap.Int("failures", t.failures))...)
		} else {
			s.log.Debug("the run succeeded", fields...)
		}
		t.quiet, t.failures = quiet{}, 0
	case StateCancelled:
		s.log.Info("the run was told to end", append(fields, zap.String("error", rec.Error))...)
	default:
		t.failures++
		s.log.Log(t.level(rec.Error, zapcore.WarnLevel, time.Now()), "the run failed", append(fields,
			zap.String("state", string(rec.State)), zap.Int("failures", t.failures), zap.String("error", rec.Error))...)
	}
}
