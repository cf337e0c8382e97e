// Package sqltest lets a test stop the transactions of a Store at every step, by a decorated
// database.
package sqltest

import (
	"context"
	"fmt"

	"baton/internal/flush"
	"baton/internal/flush/sql"
)

// Step is a boundary of the protocol, where a process may die or a connection drop.
type Step string

// The steps of Apply and TakeOver, in their order.
const (
	StepBeforeBegin Step = "before begin" // with a connection, without a transaction
	StepAfterBegin  Step = "after begin"
	StepAfterLedger Step = "after ledger"
	StepAfterMove   Step = "after move" // instead of the ledger, where the position is in the database
	StepAfterRows   Step = "after rows"
	StepAfterMarks  Step = "after marks"
	StepAfterDead   Step = "after dead letters"
	StepAfterFence  Step = "after fence check"
	StepAfterCommit Step = "after commit"

	StepTakeOverBeforeCommit Step = "take over: before commit"
	StepTakeOverAfterCommit  Step = "take over: after commit"
)

// Steps lists every step, those of Apply first.
func Steps() []Step {
	return []Step{
		StepBeforeBegin, StepAfterBegin, StepAfterLedger, StepAfterMove, StepAfterRows, StepAfterMarks, StepAfterDead,
		StepAfterFence, StepAfterCommit,
		StepTakeOverBeforeCommit, StepTakeOverAfterCommit,
	}
}

// Observed is a dialect whose transactions call observe at every step. Its error ends the
// transaction there, as a lost connection would. Transactions that neither write a batch
// or a dead letter's row nor take the fence have no steps.
func Observed(d *sql.Dialect, observe func(Step) error) *sql.Dialect {
	decorated := *d
	decorated.Open = func(s sql.Setup) (sql.Database, error) {
		db, err := d.Open(s)
		return &database{db, s.Queries, observe}, err
	}
	return &decorated
}

type database struct {
	sql.Database
	queries sql.Queries
	observe func(Step) error
}

// Session implements sql.Database.
func (d *database) Session(ctx context.Context) (sql.Session, error) {
	s, err := d.Database.Session(ctx)
	if err != nil {
		return nil, err
	}
	return &session{Session: s, db: d}, nil
}

func (d *database) at(steps ...Step) error {
	for _, step := range steps {
		if err := d.observe(step); err != nil {
			return fmt.Errorf("stopped %s: %w: %w", step, flush.ErrTransient, err)
		}
	}
	return nil
}

// purpose is the purpose of a transaction, known from its second statement.
type purpose int

const (
	unknown purpose = iota
	writing
	taking
	other
)

// session derives the steps of one transaction from its statements.
type session struct {
	sql.Session
	db      *database
	is      purpose
	entered bool // in the ledger, or the position is moved
	written bool // all rows, or those that a batch writes ahead of its turn
	buried  bool // all dead letters
	checked bool // the fence
}

// Run implements sql.Session.
func (s *session) Run(ctx context.Context, tasks ...sql.Task) error {
	if len(tasks) > 1 && tasks[0].Query == "begin" {
		if s.is = purposeOf(tasks[1]); s.is == writing {
			if err := s.db.at(StepBeforeBegin); err != nil {
				return err
			}
			return s.Session.Run(ctx, opening(s, tasks)...)
		}
		return s.Session.Run(ctx, tasks...)
	}
	if len(tasks) == 0 || tasks[0].Query == "begin" {
		return s.Session.Run(ctx, tasks...)
	}
	if err := s.reveal(purposeOf(tasks[0])); err != nil {
		return err
	}
	if enters(tasks[0]) { // behind what was written ahead
		if err := s.before(tasks[0].Query); err != nil {
			return err
		}
		return s.Session.Run(ctx, append([]sql.Task{s.entering(tasks[0])}, tasks[1:]...)...)
	}
	marks := isMarks(tasks[0])
	if s.is == writing && (tasks[0].Plan == nil || marks) {
		if err := s.before(tasks[0].Query); err != nil {
			return err
		}
	}
	if err := s.Session.Run(ctx, tasks...); err != nil || !marks {
		return err
	}
	return s.db.at(StepAfterMarks)
}

// Read implements sql.Session.
func (s *session) Read(ctx context.Context, text string, args []any, each func(row []any) error) error {
	if s.is == writing && text == s.db.queries["fence_check"] {
		if err := s.before("fence_check"); err != nil {
			return err
		}
	}
	return s.Session.Read(ctx, text, args, each)
}

// Commit implements sql.Session.
func (s *session) Commit(ctx context.Context) error {
	before, after := []Step(nil), []Step(nil)
	switch {
	case s.is == taking:
		before, after = []Step{StepTakeOverBeforeCommit}, []Step{StepTakeOverAfterCommit}
	case s.is == writing && s.checked:
		before, after = []Step{StepAfterFence}, []Step{StepAfterCommit}
	case s.is == writing: // what an operator replays is under no fence
		before, after = []Step{StepAfterDead}, []Step{StepAfterCommit}
	}
	if err := s.db.at(before...); err != nil {
		return err
	}
	if err := s.Session.Commit(ctx); err != nil {
		return err
	}
	return s.db.at(after...)
}

// purposeOf is the purpose of a transaction whose first statement after BEGIN is t.
func purposeOf(t sql.Task) purpose {
	switch t.Query {
	case "", "ledger_insert", "position_insert", "position_move", "dead_insert", "dead_part_insert":
		return writing
	case "fence_take":
		return taking
	}
	return other
}

// reveal hears what a transaction is for that began with nothing but BEGIN.
func (s *session) reveal(p purpose) error {
	if s.is != unknown {
		return nil
	}
	if s.is = p; p != writing {
		return nil
	}
	return s.db.at(StepAfterBegin)
}

// before comes by the steps that are behind a transaction when it goes on with a query.
func (s *session) before(query string) error {
	if !s.written {
		s.written = true
		steps := []Step{StepAfterLedger, StepAfterRows}
		if s.entered || enters(sql.Task{Query: query}) {
			steps = steps[1:]
		} // otherwise there is none to wait for
		if err := s.db.at(steps...); err != nil {
			return err
		}
	}
	if (query == "fence_check" || query == "fence_write") && !s.buried {
		s.buried, s.checked = true, true
		return s.db.at(StepAfterDead)
	}
	return nil
}

// opening has the first statements of a transaction tell when they are done.
func opening(s *session, tasks []sql.Task) []sql.Task {
	out := append([]sql.Task{then(s, tasks[0], StepAfterBegin)}, tasks[1:]...)
	if enters(tasks[1]) {
		out[1] = s.entering(tasks[1])
	}
	return out
}

// enters: by the task the database remembers the batch.
func enters(t sql.Task) bool {
	return t.Query == "ledger_insert" || t.Query == "position_insert" || t.Query == "position_move"
}

// entering has such a task tell when it is done.
func (s *session) entering(t sql.Task) sql.Task {
	s.entered = true
	if t.Query == "ledger_insert" {
		return then(s, t, StepAfterLedger)
	}
	return then(s, t, StepAfterMove)
}

// then comes by steps once the task is done.
func then(s *session, t sql.Task, steps ...Step) sql.Task {
	did := t.Then
	t.Then = func(touched int64) error {
		if did != nil {
			if err := did(touched); err != nil {
				return err
			}
		}
		return s.db.at(steps...)
	}
	return t
}

// isMarks: the totals of counters have a table of their own, and no job's table is theirs.
func isMarks(t sql.Task) bool {
	return t.Plan != nil && len(t.Plan.Columns) == 3 && t.Plan.Columns[2].Name == "total" && t.Plan.Columns[0].Name == "job"
}
