package job

import (
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// command is what the machine of a job wants done. The loop does it when the event that
// it comes of has been dealt with, in the order in which it was given.
type command any

type (
	startRun  struct{ f *flight } // claim it, and run it if the claim is granted
	cancelRun struct {
		f     *flight
		cause error
	}
	withdrawClaim struct{ f *flight } // ask for its claim no more
	forgetRun     struct{ f *flight } // it has ended

	recordMissed struct{ missed Missed }
	recordEnd    struct{ rec Record }
	recordLost   struct { // and let the machine know when it is recorded
		rec   Record
		rerun bool
	}
	reportMissed struct { // log and metrics
		missed  Missed
		refused error // what the ledger answered to the slot that they waited for
	}
	reportLost struct{ rec Record } // a run that never began, though its claim was granted

	answerTo struct {
		to  chan<- error
		err error
	}
	endTerm   struct{ err error }
	forgetJob struct{} // it is no longer configured, and nothing of it goes on
	logLine   struct {
		level  zapcore.Level
		err    error // if all jobs share it, the line is for debugging alone
		seldom bool  // the same line is worth saying once in a while
		text   string
		fields []zap.Field
	}
)

// moment is what an event finds beside the job.
type moment struct {
	now   time.Time // by the wall clock, which slots follow
	clock time.Time // by the one that only goes forward, which patience follows
	room  int       // how many runs may still begin
	over  bool      // the term has ended: nothing may
}

// leadership is what machines know of the term.
type leadership struct {
	term      Term
	began     time.Time // slots up to here are for catching up
	freeSince time.Time // of them, those after this passed without a leader
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

// cancelRun has a run end, for the first cause that is given.
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
