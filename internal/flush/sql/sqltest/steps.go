// Package sqltest wraps a database, so that a test can stop the transactions of a Store at every step.
package sqltest

import (
	"context"
	"fmt"
	"strings"

	"baton/internal/flush"
	"baton/internal/flush/sql"
)

// Step is a step of the protocol at which a process may die or a connection may break.
type Step string

// These are the steps of Apply, in their order, and then the steps of TakeOver.
const (
	StepBeforeBegin Step = "before begin" // there is a connection, but no transaction
	StepAfterBegin  Step = "after begin"
	StepAfterLedger Step = "after ledger"
	StepAfterMove   Step = "after move" // instead of StepAfterLedger, if the source keeps its position in the database
	StepAfterRows   Step = "after rows"
	StepAfterMarks  Step = "after marks"
	StepAfterDead   Step = "after dead letters"
	StepAfterFence  Step = "after fence check"
	StepAfterCommit Step = "after commit"

	// StepAfterOld is in no list: only a batch with Keep reads old rows. This step is passed after each of these readings.
	StepAfterOld Step = "after old rows"

	StepTakeOverBeforeCommit Step = "take over: before commit"
	StepTakeOverAfterCommit  Step = "take over: after commit"
)

// Steps returns all steps except StepAfterOld. The steps of Apply come first.
func Steps() []Step {
	return []Step{
		StepBeforeBegin, StepAfterBegin, StepAfterLedger, StepAfterMove, StepAfterRows, StepAfterMarks, StepAfterDead,
		StepAfterFence, StepAfterCommit,
		StepTakeOverBeforeCommit, StepTakeOverAfterCommit,
	}
}

// Observed returns a dialect whose transactions call observe at every step. An error of observe ends the transaction at that step, as if
// the connection was lost. Only transactions that write a batch or a dead letter's row, that put a deleted
// row back, or that claim the fence, have steps.
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

// purpose says why a transaction was begun. The second statement of the transaction shows this.
type purpose int

const (
	unknown purpose = iota
	writing
	taking
	other
)

// session derives from the statements of one transaction which steps the transaction has reached.
type session struct {
	sql.Session
	db      *database
	is      purpose
	entered bool // the batch is in the ledger, or its position is moved
	written bool // all rows are written, or all rows that a batch writes before its turn
	buried  bool // all dead letters are written
	checked bool // the fence is checked
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
	if tasks[0].Query == "kept_put_back" { // the last statement of the transaction that puts a deleted row back
		s.is, s.checked = writing, true
	}
	if strings.HasPrefix(tasks[0].Query, "kept_") { // the reading of old rows is no step
		return s.Session.Run(ctx, tasks...)
	}
	if err := s.reveal(purposeOf(tasks[0])); err != nil {
		return err
	}
	if enters(tasks[0]) { // the rows that were written ahead come first
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
	old := s.is == writing && !s.written && text != s.db.queries["fence_check"]
	err := s.Session.Read(ctx, text, args, each)
	if err == nil && old {
		return s.db.at(StepAfterOld)
	}
	return err
}

// Commit implements sql.Session.
func (s *session) Commit(ctx context.Context) error {
	before, after := []Step(nil), []Step(nil)
	switch {
	case s.is == taking:
		before, after = []Step{StepTakeOverBeforeCommit}, []Step{StepTakeOverAfterCommit}
	case s.is == writing && s.checked:
		before, after = []Step{StepAfterFence}, []Step{StepAfterCommit}
	case s.is == writing: // a replay of an operator needs no fence
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

// purposeOf returns the purpose of a transaction whose first statement after BEGIN is t.
func purposeOf(t sql.Task) purpose {
	switch t.Query {
	case "", "ledger_insert", "position_insert", "position_move", "dead_insert", "dead_part_insert":
		return writing
	case "fence_take":
		return taking
	}
	return other
}

// reveal records the purpose of a transaction whose first call of Run contained only BEGIN.
func (s *session) reveal(p purpose) error {
	if s.is != unknown {
		return nil
	}
	if s.is = p; p != writing {
		return nil
	}
	return s.db.at(StepAfterBegin)
}

// before observes the steps that are complete because the transaction continues with the given query.
func (s *session) before(query string) error {
	if !s.written {
		s.written = true
		steps := []Step{StepAfterLedger, StepAfterRows}
		if s.entered || enters(sql.Task{Query: query}) {
			steps = steps[1:]
		} // otherwise there is no turn to wait for
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

// opening returns the first tasks of a transaction, changed so that they observe the steps after BEGIN and after the entry of the batch.
func opening(s *session, tasks []sql.Task) []sql.Task {
	out := append([]sql.Task{then(s, tasks[0], StepAfterBegin)}, tasks[1:]...)
	if enters(tasks[1]) {
		out[1] = s.entering(tasks[1])
	}
	return out
}

// enters reports whether a task enters the batch into the ledger or moves its position.
func enters(t sql.Task) bool {
	return t.Query == "ledger_insert" || t.Query == "position_insert" || t.Query == "position_move"
}

// entering returns a task that enters the batch or moves its position, changed so that it observes its step when it is done.
func (s *session) entering(t sql.Task) sql.Task {
	s.entered = true
	if t.Query == "ledger_insert" {
		return then(s, t, StepAfterLedger)
	}
	return then(s, t, StepAfterMove)
}

// then returns the task, changed so that it observes the given steps when it is done.
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

// isMarks reports whether a task writes marks. The totals of counters are in a table of baton, not in a job's table.
func isMarks(t sql.Task) bool {
	return t.Plan != nil && len(t.Plan.Columns) == 3 && t.Plan.Columns[2].Name == "total" && t.Plan.Columns[0].Name == "job"
}
