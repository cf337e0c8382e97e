package job

import (
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// command is an action that a job's machine requests while it handles an event. The loop executes the commands of an event in the order of
// the requests, after the event's method has returned.
type command any

type (
	startRun  struct{ f *activeRun } // claim the run, and start it if the claim is granted
	cancelRun struct {
		f     *activeRun
		cause error
	}
	withdrawClaim struct{ f *activeRun } // stop asking for the run's claim
	forgetRun     struct{ f *activeRun } // the run has ended

	recordMissed struct{ missed Missed }
	recordEnd    struct{ rec Record }
	recordLost   struct { // and report to the machine when it is recorded
		rec   Record
		rerun bool
	}
	reportMissed struct { // in the log and the metrics
		missed  Missed
		refused error // the ledger's answer to the slot for which these slots waited
	}
	reportLost struct{ rec Record } // a run that never began, although its claim was granted

	answerTo struct {
		to  chan<- error
		err error
	}
	endTerm       struct{ err error }
	compareClocks struct{} // compare the node's clock with the ledger's
	forgetJob     struct{} // the job is no longer configured, and its last run has ended
	logLine       struct {
		level  zapcore.Level
		err    error // if all jobs share it, the line is logged at debug level
		seldom bool  // the same line is logged only rarely
		text   string
		fields []zap.Field
	}
)

// eventContext holds the values that a machine needs to handle an event: the time, and how many runs may begin.
type eventContext struct {
	now   time.Time // by the wall clock, which slots follow
	clock time.Time // monotonic, for time limits
	room  int       // how many more runs may begin
	over  bool      // the term has ended: no run may begin
}

// leadership holds the fields of the term that machines use.
type leadership struct {
	term      Term
	began     time.Time // slots up to this time are caught up
	freeSince time.Time // slots after this time and before began passed without a leader
	newID     func() (string, error)
}

func (m *machine) do(c command) { m.commands = append(m.commands, c) }

func (m *machine) start(f *activeRun) {
	m.active = append(m.active, f)
	if f.counted {
		m.room--
	}
	m.do(startRun{f})
}

// cancelRun cancels a run. If a run is cancelled again, its first cause stays.
func (m *machine) cancelRun(f *activeRun, cause error) {
	if f.cause == nil {
		f.cause = cause
	}
	m.do(cancelRun{f, cause})
}

func (m *machine) answer(to chan<- error, err error) {
	if to != nil {
		m.do(answerTo{to, err})
	}
}

// fail ends the term with an error.
func (m *machine) fail(err error) {
	m.over = true
	m.do(endTerm{err})
}

func (m *machine) say(level zapcore.Level, err error, text string, fields ...zap.Field) {
	m.do(logLine{level: level, err: err, text: text, fields: fields})
}
