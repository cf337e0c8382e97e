package job

import (
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// command is an action that a job's machine requests. The loop carries out the commands of an
// event in their order, after the event's method has returned.
type command any

type (
	startRun  struct{ f *flight } // claim it, and run it if the claim is granted
	cancelRun struct {
		f     *flight
		cause error
	}
	withdrawClaim struct{ f *flight } // stop asking for its claim
	forgetRun     struct{ f *flight } // it has ended

	recordMissed struct{ missed Missed }
	recordEnd    struct{ rec Record }
	recordLost   struct { // and report to the machine once it is recorded
		rec   Record
		rerun bool
	}
	reportMissed struct { // log and metrics
		missed  Missed
		refused error // the ledger's answer to the slot that they waited for
	}
	reportLost struct{ rec Record } // a run that never began, though its claim was granted

	answerTo struct {
		to  chan<- error
		err error
	}
	endTerm    struct{ err error }
	clockDoubt struct{} // the node's clock and the ledger's are to be compared
	forgetJob  struct{} // it is no longer configured, and its last run has ended
	logLine    struct {
		level  zapcore.Level
		err    error // if all jobs share it, the line is logged at debug level
		seldom bool  // the same line is logged rarely
		text   string
		fields []zap.Field
	}
)

// moment is the context of an event.
type moment struct {
	now   time.Time // by the wall clock, which slots follow
	clock time.Time // monotonic, for time limits
	room  int       // how many runs may still begin
	over  bool      // the term has ended: nothing may begin
}

// leadership is the part of the term that machines know.
type leadership struct {
	term      Term
	began     time.Time // slots up to here are caught up
	freeSince time.Time // slots after this and before began passed without a leader
	newID     func() (string, error)
}

func (m *machine) do(c command) { m.commands = append(m.commands, c) }

func (m *machine) start(f *flight) {
	m.flights = append(m.flights, f)
	if f.counted {
		m.room--
	}
	m.do(startRun{f})
}

// cancelRun ends a run; the first cause counts.
func (m *machine) cancelRun(f *flight, cause error) {
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

// fail ends the term.
func (m *machine) fail(err error) {
	m.over = true
	m.do(endTerm{err})
}

func (m *machine) say(level zapcore.Level, err error, text string, fields ...zap.Field) {
	m.do(logLine{level: level, err: err, text: text, fields: fields})
}
