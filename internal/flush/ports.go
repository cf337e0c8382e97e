package flush

import (
	"context"
	"errors"
	"fmt"
	"time"

	"baton/internal/flush/row"
)

// These are the errors of the ports. They are matched by errors.Is.
var (
	// ErrFenced means that a newer leader has taken this job's fence. Nothing was written; the node must step down.
	ErrFenced = errors.New("flush: fenced off by a newer leader")
	// ErrTransient means that the transaction was not applied, or that its outcome is unknown (connection lost, deadlock, lock or
	// statement timeout). Applying the same batch again is safe: the ledger recognises it.
	ErrTransient = errors.New("flush: transaction outcome unknown; safe to retry")
	// ErrNoTable means that the target table does not exist, or that this user cannot see it.
	ErrNoTable = errors.New("flush: no such table")
	// ErrStaleStage means that the stage with that id no longer exists, because another process has discarded it.
	ErrStaleStage = errors.New("flush: stage is gone")
	// ErrMoved means that a shard's position in the database is not the start of the batch. Nothing was written; the next run reads the
	// position again.
	ErrMoved = errors.New("flush: another process has moved the position")
	// ErrGap means that the entry at the recorded position is no longer in the source, so unread records may be gone. Nothing was written;
	// an operator must decide.
	ErrGap = errors.New("flush: gap in the source")
	// ErrEmptied means that a command has emptied the source (FLUSHALL, for example). Nothing was written; an operator must decide.
	ErrEmptied = errors.New("flush: the source was emptied")
	// ErrTooManyDead means that more records of a batch do not fit the table than the job allows. Nothing was written; the mapping, the
	// table or the producer is wrong.
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

// TooManyDeadError describes a batch that has more dead letters than the job allows. It matches ErrTooManyDead.
type TooManyDeadError struct {
	Dead, Limit int
	First       row.DeadLetter // one of the dead letters, as an example
}

func (e *TooManyDeadError) Error() string {
	return fmt.Sprintf("%d records of one batch do not fit the table, but the limit is %d, so nothing of the batch was written: correct "+
		"the table, the job or the records, or raise `dead_letters.per_batch`; the first error: %s (record %s)",
		e.Dead, e.Limit, e.First.Error, row.Quote(e.First.Record))
}

// Is makes errors.Is(err, ErrTooManyDead) true.
func (e *TooManyDeadError) Is(target error) bool { return target == ErrTooManyDead }

// UncountedError is an error that says why a source cannot count its backlog now. It does not mean that the source has failed.
type UncountedError struct {
	Why string
	// Elsewhere means that only the leader's process can count the backlog, because this process does not follow the changes.
	Elsewhere bool
	// ByRun means that only a run finds the changes. Then the lag is the age of the last run.
	ByRun bool
}

func (e *UncountedError) Error() string { return "flush: the backlog cannot be counted: " + e.Why }

// Leadership has the fields of the term that a flush needs. It is declared here so that this package never imports the elector.
type Leadership interface {
	// Owner is the term's UUID.
	Owner() string
	// Epoch is the term's fencing token.
	Epoch() int64
	// Raise raises the epoch of the lock above floor, which is an epoch that a database has already recorded. Raise fails if this node has
	// lost the lock.
	Raise(ctx context.Context, floor int64) (int64, error)
}

// Fence is the record of the leader that may write for one job. Every transaction of the job checks the fence before COMMIT.
type Fence struct {
	Job    string
	Epoch  int64
	Owner  string
	NodeID string
	// Lease is the duration of the term's lease. Nodes need this duration when they find a Redis that has lost its data. 0 means unknown.
	Lease time.Duration
}

// Source is one shard of a job's data: one live key in Redis, and the key's stage. The caller may repeat every method after any failure.
type Source interface {
	// Name identifies the shard in logs and errors, for example "views:3".
	Name() string
	// Stage freezes the pending changes under newID, or finds the stage that an earlier run left (Stage.Resumed). ok is false when
	// nothing is pending.
	//
	// A source whose position is in the database (Guarantee.Placed) freezes nothing. It gets the recorded position, or "" without one, and
	// checks that it can continue there. If it cannot continue, it returns ErrGap.
	Stage(ctx context.Context, newID, position string) (s Stage, ok bool, err error)
	// Read passes the stage's records to yield, page by page, until yield fails or all records are read. It reads at most one page ahead of
	// yield for each lane. It must not use a page after yield has returned, because the records of a huge page are cleared then.
	Read(ctx context.Context, s Stage, yield func(Page) error) error
}

// Releaser is a Source whose pages leave the stage one by one, or that must know which pages are committed.
type Releaser interface {
	Source
	// Done is called after a page has been committed. Done removes the page from the stage now or soon afterwards, but not later than
	// Discard. Done may be repeated, and acts only on the stage s.ID. It may be called while Read reads another page, but never twice at a
	// time.
	Done(ctx context.Context, s Stage, p Page) error
}

// Discarder is a Source that must clean up after a stage.
type Discarder interface {
	Source
	// Discard removes the stage if the stage still has the id s.ID. It is called after the last page was committed.
	Discard(ctx context.Context, s Stage) error
}

// Counted is a Source that can count its pending changes.
type Counted interface {
	Source
	// Backlog counts the pending changes, including staged ones, without scanning. It returns an *UncountedError if it cannot count them
	// now.
	Backlog(ctx context.Context) (int64, error)
}

// Waiter is a Source that can wait for work without polling.
type Waiter interface {
	Source
	// Wait returns when changes may be pending, or ctx has ended. It removes nothing, and may return early.
	Wait(ctx context.Context) error
}

// Stage is the content of one batch, frozen in Redis under an id.
type Stage struct {
	ID      string
	Parts   int   // the number of parts, which every reading repeats; 0 for a source that is idempotent by nature
	Size    int64 // the number of records in the stage when the stage was found
	Resumed bool  // an earlier run made the stage
	// Note is a message for the operator, for example that a gap was skipped. Expected means that the message reports nothing wrong, as
	// when a new job begins.
	Note     string
	Expected bool
	// Job is the name of the job that made the stage. The ledger contains the stage's parts under that name. "" means the calling job.
	Job string
	// Rows is set by the pipeline for Read. A source of changes uses Rows to find the rows of its keys. If Rows is nil, the source yields
	// Gone records without a search for rows.
	Rows RowFinder
	// changeLimit limits how many existing rows a pass may change and delete.
	changeLimit *changeLimit
}

// Page is the content of one transaction.
type Page struct {
	// Part is the number of the page's part of the stage, which the ledger records. -1 means that the page needs no ledger entry, because
	// the page has a Move, or because it is idempotent: the state that is written last is the right one.
	Part    int
	Records []row.Record
	// Lane is the number of the lane that writes the page, from 0. Pages of one lane are written in order, and pages of different lanes
	// concurrently. So all records of one row must have the same lane. If Lane is InOrder for one page of a stage, it must be InOrder for
	// all pages of the stage.
	Lane int
	// Move is the step from the previous page to this one, for a source whose position is in the database.
	Move *Move
	// Marks are the new totals after the page's differences are added, for jobs with the setting "mode: watermark".
	Marks []Mark
	// Left, if set, is called once the page has left its stage and nothing refers to its records any longer. Then another page may use
	// the memory of the records. The pipeline may also never call Left.
	Left func()
}

// Move moves a shard's position from one entry to another. The move is in the same transaction as the records between the two entries.
type Move struct {
	From, To string // From is "" at the very first move
}

// Mark is the flushed total of a counter, for jobs with the setting "mode: watermark". The database stores the mark in the transaction that
// adds the difference.
type Mark struct {
	Name, Value string
}

// Sink is one database.
type Sink interface {
	// Table reads the catalogue. It returns ErrNoTable if there is no such table.
	Table(ctx context.Context, name string) (row.Table, error)
	// TakeOver makes f the job's fence. The fence is committed when TakeOver returns. TakeOver waits for the old leader's open transaction.
	// It returns *FencedError if the fence has a higher epoch, or the same epoch and another owner. Another call with the same fence
	// succeeds.
	TakeOver(ctx context.Context, f Fence) error
	// Positions reads the recorded positions of some shards of f's job. It returns "" for a shard without a position. It waits for the
	// job's open transaction, even if another node has begun that transaction, so that only later batches can change the result. It returns
	// *FencedError if the fence is not f.
	Positions(ctx context.Context, f Fence, shards []string) ([]string, error)
	// Marks reads the totals of counters by their names. Like Positions, it waits for the job's open transaction and checks the fence.
	Marks(ctx context.Context, f Fence, names []string) ([]string, error)
	// Apply writes one batch in one transaction: ledger or position, rows, dead letters and, last, the check of the fence. The errors of
	// Apply are *FencedError, *TooManyDeadError, ErrMoved, ErrGaveWay and ErrTransient, which are documented above. After a success Apply
	// keeps no reference to a row, because another page may use the memory of the rows.
	Apply(ctx context.Context, f Fence, p *row.Plan, b Batch) (Outcome, error)
}

// Batch is the content of one transaction. Rows are unique by key and sorted by key.
type Batch struct {
	ID    string
	Job   string // the job's name in the ledger, if it differs from the name in the fence: see Stage.Job
	Shard string // the Name of the source, which has one stage at a time
	Part  int    // see Page.Part
	Rows  []row.Row
	Dead  []row.DeadLetter
	// DeadLimit is the maximum number of the batch's dead letters. 0: no limit.
	DeadLimit int
	// Move, if set, is used instead of a ledger entry. If the recorded position is To, the batch was already applied.
	Move *Move
	// Marks replace the marks of these counters in the database; see row.ByMark.
	Marks []Mark
	// Keep says which old rows are kept.
	Keep Keep
	// Bytes is the length of the records' texts, for statistics.
	Bytes int64
	// AwaitTurn, if set, returns once all batches before this one are committed. Apply calls it once. Before this call returns, Apply may
	// write Rows, and nothing else. If the database refuses a row before that, Apply tries the row again afterwards. If AwaitTurn fails,
	// Apply rolls back and returns AwaitTurn's error.
	AwaitTurn func(ctx context.Context) error
	// Late are further rows, sorted like Rows, and with other keys than Rows. Apply must not write the rows in Late before AwaitTurn has
	// returned, because an earlier batch may write the same keys.
	Late []row.Row
}

// Keep makes a batch keep old rows as a whole, in the transaction of the batch. These are the rows that the batch deletes or empties, and
// those that it overwrites by a row with Adopted.
type Keep struct {
	For time.Duration // how long the rows are kept; 0 means that no rows are kept
	Why Why           // the reason of the batch's deletions
}

// Why is the reason why a row was deleted or overwritten.
type Why string

// These are the reasons why a row was deleted or overwritten.
const (
	WhyMissing  Why = "missing"  // on_missing: the row's key was missing when baton read a change or a mark of a repair
	WhyVanished Why = "vanished" // a pass over all keys did not find the row's key
	WhyAdopted  Why = "adopted"  // an accepted pass has overwritten the row
)

// Outcome contains the counts and the dead letters of a batch that a Sink has applied.
type Outcome struct {
	Applied bool // false: the ledger already contains the batch, so nothing was written
	Rows    int64
	// Deleted is the number of rows that existed and were deleted. Rows includes them.
	Deleted int64
	// Ignored is the number of rows that the database accepted and did not write, because a trigger has dropped these rows or has written
	// them to another table.
	Ignored int64
	Dead    []row.DeadLetter // all dead letters of the batch, including rows that the database refused
}

// TableCreator is a Sink that can make tables.
type TableCreator interface {
	// DescribeTable returns the statement that CreateTable would run, and the resulting catalogue. It sends no request to the server.
	DescribeTable(t row.TableSpec) (ddl string, table row.Table, err error)
	// CreateTable creates the table. The table is committed when CreateTable returns. If a table with the name exists, CreateTable does
	// nothing.
	CreateTable(ctx context.Context, t row.TableSpec) error
}
