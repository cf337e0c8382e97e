package flush

import (
	"context"
	"errors"
	"fmt"
	"time"

	"baton/internal/flush/row"
)

// The errors of the ports, matched by errors.Is.
var (
	// ErrFenced: a newer leader has taken this job's fence. Nothing was written; step down.
	ErrFenced = errors.New("flush: fenced off by a newer leader")
	// ErrTransient: the transaction was not applied, or its outcome is unknown (connection lost, deadlock, lock or statement timeout).
	// Applying the very same batch again is safe: the ledger recognises it.
	ErrTransient = errors.New("flush: transaction outcome unknown; safe to retry")
	// ErrNoTable: the target table does not exist, or this user cannot see it.
	ErrNoTable = errors.New("flush: no such table")
	// ErrStaleStage: the stage of that id is no longer there; another process discarded it.
	ErrStaleStage = errors.New("flush: stage is gone")
	// ErrMoved: a shard's position in the database is not the start of the batch. Nothing was written; the next run reads the position
	// again.
	ErrMoved = errors.New("flush: position was moved meanwhile")
	// ErrGap: the entry of a position is no longer in the source, so unread records may be
	// gone. Nothing was written; an operator has to decide.
	ErrGap = errors.New("flush: gap in the source")
	// ErrEmptied: a command has emptied the source (FLUSHALL, for example). Nothing was written; an
	// operator has to decide.
	ErrEmptied = errors.New("flush: the source was emptied")
	// ErrTooManyDead: more records of one batch do not fit than the job allows.
	// Nothing was written; the mapping, the table or the producer is wrong.
	ErrTooManyDead = errors.New("flush: too many dead letters")
)

// FencedError names the holder of the fence. It matches ErrFenced.
type FencedError struct {
	Job   string
	Epoch int64 // the epoch found in the fence
	Owner string
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("flush: fence of job %q is held by epoch %d (owner %s)", e.Job, e.Epoch, e.Owner)
}

// Is makes errors.Is(err, ErrFenced) true.
func (e *FencedError) Is(target error) bool { return target == ErrFenced }

// TooManyDeadError describes a batch over its limit. It matches ErrTooManyDead.
type TooManyDeadError struct {
	Dead, Limit int
	First       row.DeadLetter // one of them, as an example
}

func (e *TooManyDeadError) Error() string {
	return fmt.Sprintf("%d records of one batch do not fit and the limit is %d, so nothing of it was written: correct the table, "+
		"the job or the records, or raise `dead_letters.per_batch`; the first: %s (record %s)",
		e.Dead, e.Limit, e.First.Error, row.Quote(e.First.Record))
}

// Is makes errors.Is(err, ErrTooManyDead) true.
func (e *TooManyDeadError) Is(target error) bool { return target == ErrTooManyDead }

// UncountedError is the reason why a source cannot count its backlog now, which is no failure.
type UncountedError struct {
	Why string
	// Elsewhere: the leader's process counts it, and this one does not follow the changes.
	Elsewhere bool
	// ByRun: only a run finds the changes. The lag is the age of the last run even so.
	ByRun bool
}

func (e *UncountedError) Error() string { return "flush: the backlog cannot be counted: " + e.Why }

// Leadership is the part of the term that a flush needs. It is declared here so that this package never imports the elector.
type Leadership interface {
	// Owner is the term's UUID.
	Owner() string
	// Epoch is the term's fencing token.
	Epoch() int64
	// Raise asks the lock for an epoch above floor, because a database has
	// recorded floor already. It fails when the lock is no longer ours.
	Raise(ctx context.Context, floor int64) (int64, error)
}

// Fence is the claim that every transaction of one job checks before it commits.
type Fence struct {
	Job    string
	Epoch  int64
	Owner  string
	NodeID string
	// Lease of the term, for nodes that find a Redis which has lost its data. 0: unknown.
	Lease time.Duration
}

// Source is one shard of a job's data: one live key in Redis and its stage. Every method can be
// repeated after any failure.
type Source interface {
	// Name identifies the shard in logs and errors, for example "views:3".
	Name() string
	// Stage freezes the pending changes under newID, or finds the stage that an earlier run left (Stage.Resumed). ok is false when
	// nothing is pending.
	//
	// A source whose position is in the database (Guarantee.Placed) freezes nothing. It gets the recorded position, "" without one, and
	// checks that it can continue there: otherwise ErrGap.
	Stage(ctx context.Context, newID, position string) (s Stage, ok bool, err error)
	// Read hands over the stage's records page by page until yield fails or the stage is read. It keeps at most one page ahead of yield
	// for each lane, and never touches a page that it has handed over: a huge record is cleared by then.
	Read(ctx context.Context, s Stage, yield func(Page) error) error
}

// Releaser is a Source whose pages leave the stage one by one, or that has to know how far
// the database is.
type Releaser interface {
	Source
	// Done is called after a page has been committed; the page leaves the stage here or
	// soon after, idempotently and only under s.ID, and with Discard at the latest. It may
	// be called while Read reads another page, never twice at a time.
	Done(ctx context.Context, s Stage, p Page) error
}

// Discarder is a Source that has something to clear away after a stage.
type Discarder interface {
	Source
	// Discard removes the stage if it still has the id s.ID. Called after the last page
	// was committed.
	Discard(ctx context.Context, s Stage) error
}

// Counted is a Source whose changes wait in a place of their own.
type Counted interface {
	Source
	// Backlog counts the pending changes, staged ones included, without scanning; an *UncountedError says why it
	// cannot now.
	Backlog(ctx context.Context) (int64, error)
}

// Waiter is a Source that can wait for work without asking again and again.
type Waiter interface {
	Source
	// Wait returns when something may be pending, or ctx has ended. It removes
	// nothing, and may return early.
	Wait(ctx context.Context) error
}

// Stage is the content of one batch, frozen in Redis under an id.
type Stage struct {
	ID      string
	Parts   int   // number of deterministic parts; 0 for a source that is idempotent by nature
	Size    int64 // records in the stage when it was found
	Resumed bool  // an earlier run made it
	// Note is a message for the operator: that a gap was passed, for example. Expected: nothing is wrong, as when a new job begins.
	Note     string
	Expected bool
	// Job is the name of the job that staged it; the ledger has its parts under that name.
	// Empty: the calling job.
	Job string
	// Rows is for Read, from the pipeline: a source of changes finds the rows of its keys by it. nil: the source yields Gone records
	// without it.
	Rows RowFinder
	// guard bounds the changes and deletions of a pass in existing rows.
	guard *guard
}

// Page is the content of one transaction.
type Page struct {
	// Part numbers a deterministic part of the stage; the ledger remembers it. -1: the page is idempotent (the last hash written wins)
	// and needs no ledger, or has a Move instead.
	Part    int
	Records []row.Record
	// Lane is the number of the lane that writes the page, from 0. Pages of one lane are written in order, those of different lanes
	// concurrently: all records of one row must have the same lane. Or it is InOrder, then for all pages of the stage.
	Lane int
	// Move is the step from the page before to this one, for a source whose position is in the database.
	Move *Move
	// Marks are the totals that the page's differences lead to (mode watermark).
	Marks []Mark
	// Left, if set, is called once the page has left its stage and no other part refers to its records, so that another page may have
	// their memory; it may also never be called.
	Left func()
}

// Move takes a shard's position from one place to the next, in the transaction of
// the records in between.
type Move struct {
	From, To string // "" at the very first move
}

// Mark is the total that a counter has been flushed up to (mode watermark). It is
// kept in the database and set in the transaction of the difference.
type Mark struct {
	Name, Value string
}

// Sink is one database.
type Sink interface {
	// Table reads the catalogue. ErrNoTable if there is no such table.
	Table(ctx context.Context, name string) (row.Table, error)
	// TakeOver makes f the job's fence, committed when it returns. It waits for
	// the old leader's transaction in flight. *FencedError when the fence has a
	// higher epoch, or the same epoch and another owner. Calling it again with
	// the same fence succeeds.
	TakeOver(ctx context.Context, f Fence) error
	// Positions reads the recorded positions of shards of f's job, "" for none. It waits for
	// the job's transaction in flight, also another node's: only later batches change its
	// result. *FencedError if the fence is not f.
	Positions(ctx context.Context, f Fence, shards []string) ([]string, error)
	// Marks reads the totals of counters in the same way, by their names.
	Marks(ctx context.Context, f Fence, names []string) ([]string, error)
	// Apply writes one batch in one transaction: ledger or position, rows, dead
	// letters and, last, the check of the fence. *FencedError, *TooManyDeadError,
	// ErrMoved, ErrGaveWay or ErrTransient as documented there. Once it has succeeded it keeps no
	// row: another page may have their place.
	Apply(ctx context.Context, f Fence, p *row.Plan, b Batch) (Outcome, error)
}

// Batch is the content of one transaction. Rows are unique by key and sorted by key.
type Batch struct {
	ID    string
	Job   string // in the ledger, if it is not the fence's: see Stage.Job
	Shard string // the Name of the source; it has one stage at a time
	Part  int    // see Page.Part
	Rows  []row.Row
	Dead  []row.DeadLetter
	// DeadLimit is the maximum number of the batch's dead letters. 0: no limit.
	DeadLimit int
	// Move, if set, is made instead of a ledger entry. Where the position is at its
	// To already, the batch was applied before.
	Move *Move
	// Marks replace the marks in the database; see row.ByMark.
	Marks []Mark
	// Bytes are those of the records' texts, for statistics.
	Bytes int64
	// Turn, if set, returns once all batches before this one are committed. Apply calls it once. Until then it may write Rows, and
	// nothing else; a row that is refused is tried again after it. If Turn fails, Apply returns that error, and has then written nothing.
	Turn func(ctx context.Context) error
	// Late are further rows, sorted like Rows, and of other keys. They must not be written
	// before Turn has returned: a batch before this one may write the same.
	Late []row.Row
}

// Outcome is the result of a batch.
type Outcome struct {
	Applied bool // false: the ledger had it already, nothing was written
	Rows    int64
	// Deleted counts the rows among them that existed and were deleted.
	Deleted int64
	// Ignored counts rows that the database accepted and did not write: a trigger has left
	// them out, or has written them elsewhere.
	Ignored int64
	Dead    []row.DeadLetter // every dead letter of the batch, also those the database refused
}

// TableCreator is a Sink that can make tables.
type TableCreator interface {
	// DescribeTable returns the statement that CreateTable would run, and the resulting catalogue. It does not ask the server.
	DescribeTable(t row.TableSpec) (ddl string, table row.Table, err error)
	// CreateTable creates the table, committed when it returns. It does nothing if the name
	// exists.
	CreateTable(ctx context.Context, t row.TableSpec) error
}
