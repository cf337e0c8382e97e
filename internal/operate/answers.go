package operate

import (
	"context"
	"strconv"
	"strings"
	"time"

	"baton/internal/diagnose"
	"baton/internal/text"
)

// Answers are the questions that a node answers beyond its Snapshot. Every method returns soon after ctx ends. [ErrNotFound] means that
// there is no such job, run or letter.
type Answers interface {
	// Events is the history of the election, the newest first, at most n.
	Events(ctx context.Context, n int) ([]diagnose.Event, error)
	// Explain reports why a node leads, or does not; "" means the node that answers.
	Explain(ctx context.Context, node string) (Explanation, error)
	// Next reports when a job is due after a time: its next n slots.
	Next(ctx context.Context, job string, from time.Time, n int) (Coming, error)
	// History is a job's finished runs and missed slots, the newest first, at most n, older than the entry with the id before; "" begins
	// with the newest.
	History(ctx context.Context, job, before string, n int) ([]Entry, error)
	// Run is the present state of a run, also of one that waits for another; "" means the run that goes on, or else the last one.
	Run(ctx context.Context, job, runID string) (JobRun, error)
	// Letters are dead letters, the newest first, at most n. The letters of one database are returned also if another database fails.
	Letters(ctx context.Context, f LetterFilter, n int) ([]Letter, error)
	// LetterKeys names dead letters, the oldest of each database first, at most n.
	LetterKeys(ctx context.Context, f LetterFilter, n int) ([]LetterKey, error)
	// Reasons counts dead letters by job and reason, the most frequent first.
	Reasons(ctx context.Context, f LetterFilter) ([]LetterReason, error)
}

// Node holds the answers that the status page and the API need from their own node.
type Node interface {
	Answers
	// Printed returns the output of a run, as far as it is kept.
	Printed(ctx context.Context, job, runID string) (Printed, error)
	// Samples are how far the flushes were behind, the oldest first, later than since.
	Samples(ctx context.Context, since time.Time) ([]Sample, error)
	// Recent are the latest runs of every job, at most [MostRecent] of each. The runs under one lock are returned also if the Redis of
	// another lock fails.
	Recent(ctx context.Context) (map[string][]Brief, error)
	// LockEvents are the histories of all elections of the configuration by their locks, the newest event first, at most n of each.
	// Histories that can be read are returned also if others cannot.
	LockEvents(ctx context.Context, n int) (map[string][]diagnose.Event, error)
}

// Operator answers commands and takes their orders: the servers themselves, which takes the configuration, or a node by its API, which
// takes its address. Both answer alike, with the same errors.
type Operator interface {
	Answers
	// Do carries out an order: see [Do].
	Do(ctx context.Context, o Order) (Outcome, error)
	// Snapshot is the state of the election and its jobs.
	Snapshot(ctx context.Context) (diagnose.Snapshot, error)
	// Election is a Snapshot without the jobs.
	Election(ctx context.Context) (diagnose.Snapshot, error)
	// Held are the locks that a client holds, by their keys: those of the configuration, and those of baton lock, which a node does not
	// know.
	Held(ctx context.Context) ([]diagnose.Lock, error)
	// Configured are the jobs as they are configured, and not how they stand.
	Configured(ctx context.Context) []diagnose.Job
	// Zone is the time zone that a job is scheduled in, with "" that of jobs without one; UTC if that zone is unknown.
	Zone(ctx context.Context, job string) *time.Location
	// Output is a piece of a run's output, from an offset on, or from where it is still kept. There is nothing more if the piece is
	// empty.
	Output(ctx context.Context, job, runID string, from int64) (Output, error)
	// Waiting counts the dead letters of each job that has some.
	Waiting(ctx context.Context) (map[string]int64, error)
	Close() error
}

// JobRun is a run as a caller sees it who ordered it, or watches it.
type JobRun struct {
	Job string       `json:"job"`
	Run diagnose.Run `json:"run"`
	// Queued: it waits for another run of the job to end. The leader sees to it.
	Queued bool `json:"queued,omitzero"`
	// Leaderless: it was begun by a leader that does not lead any more.
	Leaderless bool `json:"leaderless,omitzero"`
}

// Succeeded reports whether the run has ended well.
func (r JobRun) Succeeded() bool { return r.Run.State == "succeeded" }

// LetterReason counts the dead letters of a job that have the same reason, apart from the values in it.
type LetterReason struct {
	Job      string    `json:"job"`
	Database string    `json:"database"`
	Reason   string    `json:"reason"`
	Letters  int64     `json:"letters"`
	Oldest   time.Time `json:"oldest"`
	Newest   time.Time `json:"newest"`
	Example  string    `json:"example"` // the id of one of them
}

// Coming is when a job is due, as far as its configuration tells.
type Coming struct {
	Job      string `json:"job"`
	Schedule string `json:"schedule"`
	Words    string `json:"words"`
	TimeZone string `json:"time_zone"`
	// Always: it has no slots, and runs for as long as its node leads.
	Always bool `json:"always,omitzero"`
	// Offset is how long after each slot the job starts, by its jitter.
	Offset text.Seconds `json:"offset_seconds,omitzero"`
	Next   []ComingSlot `json:"next"`
	// Shifts are the slots within a year that the clock of the zone moves, or would repeat.
	Shifts []ComingSlot `json:"shifts,omitempty"`
}

// ComingSlot is a slot in the zone of its job, and when the job starts.
type ComingSlot struct {
	Slot  time.Time `json:"slot"`
	Start time.Time `json:"start"`
	// Note says how the zone's clock changes the slot.
	Note string `json:"note,omitzero"`
}

// Explanation is why a node leads, or does not.
type Explanation struct {
	NodeID  string `json:"node_id"`
	LockKey string `json:"lock_key"`
	Leads   bool   `json:"leads"`
	Reasons []Why  `json:"reasons"` // the weightiest first
}

// WhyRedis is the code of an election that cannot be read: no more can be found out.
const WhyRedis = "redis_unreachable"

// WhyNeverSeen is the code of a node that has never registered: most likely its name was mistyped.
const WhyNeverSeen = "never_seen"

// Why is one reason.
type Why struct {
	Code string `json:"code"` // one word for programs
	What string `json:"what"`
	Do   string `json:"do,omitzero"` // what to do about it; "" where nothing is amiss
}

// Entry is one of a job's history: a finished run, or slots that were missed.
type Entry struct {
	ID     string        `json:"id"` // says where to go on
	At     time.Time     `json:"at"`
	Run    *diagnose.Run `json:"run,omitempty"`
	Missed *Missed       `json:"missed,omitempty"`
}

// MostRecent is how many runs of each job are at hand without its history being read.
const MostRecent = 30

// Brief is an entry of a job's history in short. The oldest stands first.
type Brief struct {
	ID       string       `json:"id"` // of the entry
	RunID    string       `json:"run_id,omitzero"`
	State    string       `json:"state"` // of the run; missed: slots that were not run
	Trigger  string       `json:"trigger,omitzero"`
	Started  time.Time    `json:"started"` // of missed slots the last one
	Duration text.Seconds `json:"duration_seconds"`
	Rows     int64        `json:"rows,omitzero"`
	Deleted  int64        `json:"deleted,omitzero"` // of the rows
	Dead     int64        `json:"dead,omitzero"`
	ExitCode *int         `json:"exit_code,omitempty"`
	// Count is how many slots were missed, or how many runs found nothing to do, one after the other.
	Count  int    `json:"count,omitzero"`
	Reason string `json:"reason,omitzero"` // why slots were missed
	NodeID string `json:"node_id"`
	// Line is the last line that the newest run has printed.
	Line string `json:"line,omitzero"`
}

// Missed are slots, one after the other, that were not run.
type Missed struct {
	Reason string    `json:"reason"`
	Count  int       `json:"count"`
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
	NodeID string    `json:"node_id"`
	Epoch  int64     `json:"epoch"`
	Error  string    `json:"error,omitzero"`
}

// Output is a piece of a run's output.
type Output struct {
	Text         string
	Offset, Next int64 // in bytes of all that it has printed
}

// Printed is a run's whole output, as far as it is kept.
type Printed struct {
	Text    string `json:"text"`
	Dropped int64  `json:"dropped,omitzero"` // bytes before Text that are not kept
	Running bool   `json:"running,omitzero"` // more may come
}

// LetterFilter picks dead letters: those that match every field that is set.
type LetterFilter struct {
	Job      string
	Database string
	ID       string        // or the beginning of one; then the record is whole
	Within   time.Duration // put aside at most this long ago
	Before   time.Duration // put aside longer ago than this
	Text     string        // stands in the record or in the reason
	Whole    bool          // the records are not cut
	// Reason is one of those that [Answers.Reasons] counts. It is searched for among the newest 5000 letters
	// that fit otherwise.
	Reason string
}

// Letter is a record that did not fit its table, and why.
type Letter struct {
	ID       string    `json:"id"`
	Job      string    `json:"job"`
	Database string    `json:"database"`
	BatchID  string    `json:"batch_id"`
	At       time.Time `json:"at"`
	Error    string    `json:"error"`
	Record   string    `json:"record"` // a JSON object, or its beginning
}

// Key says which letter it is.
func (l Letter) Key() LetterKey { return LetterKey{ID: l.ID, Job: l.Job, Database: l.Database} }

// Sample is how far the flushes of one lock's leader were behind at one moment.
type Sample struct {
	At   time.Time        `json:"at"`
	Jobs map[string]Level `json:"jobs"`
}

// Level is how far one flush was behind.
type Level struct {
	LagSeconds float64 `json:"lag_seconds"`
	Backlog    int64   `json:"backlog"`
	// RowsPerSecond is the rate of writing since the previous sample; absent if unknown.
	RowsPerSecond *float64 `json:"rows_per_second,omitempty"`
}

// IsEntryID reports whether a text may be the id of an entry; "" is the newest's.
func IsEntryID(id string) bool {
	at, seq, two := strings.Cut(id, "-")
	_, err := strconv.ParseUint(at, 10, 63)
	if two && err == nil {
		_, err = strconv.ParseUint(seq, 10, 63)
	}
	return id == "" || err == nil
}
