package operate

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"baton/internal/diagnose"
	"baton/internal/text"
)

// Answers contains the questions that a node's Snapshot does not answer, but the node does. Every method returns soon after ctx ends.
// [ErrNotFound] means that the job, run or letter does not exist.
type Answers interface {
	// Events returns at most n events of the election's history, the newest event first.
	Events(ctx context.Context, n int) ([]diagnose.Event, error)
	// Explain reports why a node leads or does not lead. The node "" means the node that answers.
	Explain(ctx context.Context, node string) (Explanation, error)
	// Next returns a job's next n slots after the time from.
	Next(ctx context.Context, job string, from time.Time, n int) (Coming, error)
	// History returns at most n entries of a job's history, the newest entry first. An entry is a finished run or missed slots. The
	// argument before is the id of an entry, and all returned entries are older than that entry. If it is "", History begins with the
	// newest entry.
	History(ctx context.Context, job, before string, n int) ([]Entry, error)
	// Run returns the current state of a run, also of a run that waits for another run. The runID "" means the run in progress, or else the
	// last run.
	Run(ctx context.Context, job, runID string) (JobRun, error)
	// Acceptance returns how many rows that a job never wrote wait to be accepted as rows of the job.
	Acceptance(ctx context.Context, job string) (Acceptance, error)
	// Letters returns at most n dead letters, the newest letter first. If one database fails, it still returns the letters of the others.
	Letters(ctx context.Context, f LetterFilter, n int) ([]Letter, error)
	// LetterKeys returns the keys of at most n dead letters, the oldest letter of each database first.
	LetterKeys(ctx context.Context, f LetterFilter, n int) ([]LetterKey, error)
	// Reasons counts dead letters by job and reason, the most frequent reason first.
	Reasons(ctx context.Context, f LetterFilter) ([]LetterReason, error)
	// DeletedRows returns at most n kept deleted rows, the newest row first. If a database fails, it returns the rows of the other
	// databases together with an error.
	DeletedRows(ctx context.Context, f RowFilter, n int) ([]DeletedRow, error)
}

// Node contains the questions that a node answers for its own status page and API.
type Node interface {
	Answers
	// Printed returns the output of a run, without the part that is no longer kept.
	Printed(ctx context.Context, job, runID string) (Printed, error)
	// Samples returns the samples after the time since, the oldest sample first. A sample says how far the tables of the flushes were
	// behind Redis at one moment.
	Samples(ctx context.Context, since time.Time) ([]Sample, error)
	// Recent returns the latest runs of every job, at most [MostRecent] for each job. If the Redis of one lock fails, it still returns the
	// runs under the other locks.
	Recent(ctx context.Context) (map[string][]Brief, error)
	// Kept counts the deleted rows of a job that are kept, at most [MostKept].
	Kept(ctx context.Context, job string) (KeptCount, error)
	// LockEvents returns the histories of all elections of the configuration, by the keys of their locks. Each history has at most n
	// events, the newest event first. If some histories cannot be read, it still returns the others.
	LockEvents(ctx context.Context, n int) (map[string][]diagnose.Event, error)
}

// Operator answers the questions of commands and carries out their orders. It uses the servers directly, which requires the configuration,
// or the API of a node, which requires the node's address. The answers and errors are the same in both cases.
type Operator interface {
	Answers
	// Do carries out an order, see [Do].
	Do(ctx context.Context, o Order) (Outcome, error)
	// Snapshot returns the state of the election and its jobs.
	Snapshot(ctx context.Context) (diagnose.Snapshot, error)
	// Election returns the Snapshot without the jobs.
	Election(ctx context.Context) (diagnose.Snapshot, error)
	// Held returns the held locks, by their keys: the locks of the configuration, and the locks of `baton lock`. A node does not know the
	// locks of `baton lock`.
	Held(ctx context.Context) ([]diagnose.Lock, error)
	// Configured returns the jobs of the configuration, without their current state.
	Configured(ctx context.Context) []diagnose.Job
	// Definition returns a job's resolved configuration without secrets. It returns "" if the caller may not see the configuration.
	Definition(ctx context.Context, job string) (string, error)
	// Zone returns the time zone of a job's schedule. The job "" means the zone of jobs without their own zone. If the zone is unknown, it
	// returns UTC.
	Zone(ctx context.Context, job string) *time.Location
	// Output returns a piece of a run's output that begins at the offset from, or at the oldest kept byte if that byte is later. An empty
	// piece means that there is no more output.
	Output(ctx context.Context, job, runID string, from int64) (Output, error)
	// Waiting returns the number of dead letters of each job that has dead letters.
	Waiting(ctx context.Context) (map[string]int64, error)
	Close() error
}

// JobRun is a run from the view of the caller who ordered it or watches it.
type JobRun struct {
	Job string       `json:"job"`
	Run diagnose.Run `json:"run"`
	// Queued means that the run waits until another run of the job ends. The leader then starts the run.
	Queued bool `json:"queued,omitzero"`
	// Leaderless means that the leader that began the run no longer leads.
	Leaderless bool `json:"leaderless,omitzero"`
}

// AcceptanceState says whether a pass of a job may change and delete rows that the job never wrote.
type AcceptanceState string

// These are the values of AcceptanceState.
const (
	NothingWaits AcceptanceState = "none"     // no pass, backfill or repair has left such rows unchanged
	RowsWait     AcceptanceState = "waits"    // the last pass, backfill or repair has left Changes and Deletes unchanged
	RowsAccepted AcceptanceState = "accepted" // the next pass, backfill or repair may change and delete that many rows
	RowsAdopted  AcceptanceState = "adopted"  // all rows of the key pattern belong to the job
)

// Acceptance says whether rows that a job never wrote wait to be accepted as rows of the job, or have been accepted. It applies to the
// job's current mapping.
type Acceptance struct {
	Job      string          `json:"job"`
	Database string          `json:"database"`
	Table    string          `json:"table"`
	Keys     string          `json:"keys"` // the key pattern; an acceptance makes every row of this pattern a row of the job
	State    AcceptanceState `json:"state"`
	// Changes and Deletes are the numbers of rows that a pass over all keys would change and delete.
	Changes int64 `json:"changes"`
	Deletes int64 `json:"deletes"`
	// By is the name of the user who accepted the rows last.
	By string `json:"by,omitzero"`
	// Ordered means that the job makes no passes: a backfill or a repair has counted the rows, and must be ordered again after the
	// acceptance.
	Ordered bool `json:"ordered,omitzero"`
}

// Writes returns the name of the work that writes the rows after an acceptance.
func (a Acceptance) Writes() string {
	if a.Ordered {
		return "the next backfill or repair"
	}
	return "the next pass"
}

// Rows returns a text such as "change 3 rows and delete 1 row".
func (a Acceptance) Rows() string {
	return fmt.Sprintf("change %s and delete %s", text.Count(a.Changes, "row"), text.Count(a.Deletes, "row"))
}

// Succeeded reports whether the run has succeeded.
func (r JobRun) Succeeded() bool { return r.Run.State == "succeeded" }

// LetterReason is the number of a job's dead letters with the same reason. The values within the text of the reason may differ between the
// letters.
type LetterReason struct {
	Job      string    `json:"job"`
	Database string    `json:"database"`
	Reason   string    `json:"reason"`
	Letters  int64     `json:"letters"`
	Oldest   time.Time `json:"oldest"`
	Newest   time.Time `json:"newest"`
	Example  string    `json:"example"` // the id of one of the dead letters
}

// Coming says when a job is due, according to its configuration.
type Coming struct {
	Job      string `json:"job"`
	Schedule string `json:"schedule"`
	Words    string `json:"words"`
	TimeZone string `json:"time_zone"`
	// Always means that the job has no slots, and runs as long as its node leads.
	Always bool `json:"always,omitzero"`
	// Offset is the time from each slot to the start of the job. It results from the job's jitter.
	Offset text.Seconds `json:"offset_seconds,omitzero"`
	Next   []ComingSlot `json:"next"`
	// Shifts are the slots within a year that daylight saving moves, or would repeat.
	Shifts []ComingSlot `json:"shifts,omitempty"`
}

// ComingSlot is a slot in the time zone of its job, with the time when the job starts.
type ComingSlot struct {
	Slot  time.Time `json:"slot"`
	Start time.Time `json:"start"`
	// Note says how daylight saving changes the slot.
	Note string `json:"note,omitzero"`
}

// Explanation says why a node leads or does not lead.
type Explanation struct {
	NodeID  string `json:"node_id"`
	LockKey string `json:"lock_key"`
	Leads   bool   `json:"leads"`
	Reasons []Why  `json:"reasons"` // the most important reason first
}

// WhyRedis is the code of a reason: the election cannot be read from Redis. In this case the Explanation has no other reason.
const WhyRedis = "redis_unreachable"

// WhyNeverSeen is the code for a node that has never registered. Most likely the user mistyped its name.
const WhyNeverSeen = "never_seen"

// Why is one reason of an Explanation.
type Why struct {
	Code string `json:"code"` // one word, for programs
	What string `json:"what"`
	Do   string `json:"do,omitzero"` // the remedy; "" if nothing is wrong
}

// Entry is an entry of a job's history: a finished run, or slots that were missed.
type Entry struct {
	ID     string        `json:"id"` // the position at which reading can continue
	At     time.Time     `json:"at"`
	Run    *diagnose.Run `json:"run,omitempty"`
	Missed *Missed       `json:"missed,omitempty"`
}

// MostRecent is the maximum number of runs of each job that [Node.Recent] returns.
const MostRecent = 30

// Brief is a short form of an entry in a job's history. In lists the oldest entry is the first.
type Brief struct {
	ID       string       `json:"id"` // the id of the entry
	RunID    string       `json:"run_id,omitzero"`
	State    string       `json:"state"` // the state of the run, or "missed" for slots without a run
	Trigger  string       `json:"trigger,omitzero"`
	Started  time.Time    `json:"started"` // for missed slots, the time of the last one
	Duration text.Seconds `json:"duration_seconds"`
	Rows     int64        `json:"rows,omitzero"`
	Deleted  int64        `json:"deleted,omitzero"` // the deleted rows among Rows
	Dead     int64        `json:"dead,omitzero"`
	ExitCode *int         `json:"exit_code,omitempty"`
	// Count is the number of missed slots, or the number of successive runs that found nothing to do.
	Count  int    `json:"count,omitzero"`
	Reason string `json:"reason,omitzero"` // why the slots were missed
	NodeID string `json:"node_id"`
	// Missed describes successive slots without a run.
	Line string `json:"line,omitzero"`
}

// Missed are successive slots without a run.
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
	Offset, Next int64 // in bytes of the whole output
}

// Printed is the whole output of a run, without the part that is no longer kept.
type Printed struct {
	Text    string `json:"text"`
	Dropped int64  `json:"dropped,omitzero"` // the number of bytes before Text that are no longer kept
	Running bool   `json:"running,omitzero"` // the run may print more
}

// LetterFilter selects the dead letters that match all fields that are set.
type LetterFilter struct {
	Job      string
	Database string
	ID       string        // the id or its beginning; then the records are not cut
	Within   time.Duration // the letter is at most this old
	Before   time.Duration // the letter is older than this
	Text     string        // the record or the reason contains this text
	Whole    bool          // the records are not cut
	// Reason is one of the reasons that [Answers.Reasons] counts. The search covers only the newest 5000 letters that match all other
	// fields of the filter.
	Reason string
}

// Letter is a record that did not fit its table, with the reason.
type Letter struct {
	ID       string    `json:"id"`
	Job      string    `json:"job"`
	Database string    `json:"database"`
	BatchID  string    `json:"batch_id"`
	At       time.Time `json:"at"`
	Error    string    `json:"error"`
	Record   string    `json:"record"` // a JSON object, or its beginning
}

// Key returns the key of the letter.
func (l Letter) Key() LetterKey { return LetterKey{ID: l.ID, Job: l.Job, Database: l.Database} }

// Sample says how far the tables of the flushes under one lock were behind Redis at one moment.
type Sample struct {
	At   time.Time        `json:"at"`
	Jobs map[string]Level `json:"jobs"`
}

// Level says how far the table of one flush was behind Redis.
type Level struct {
	LagSeconds float64 `json:"lag_seconds"`
	Backlog    int64   `json:"backlog"`
	// RowsPerSecond is the number of rows written per second since the previous sample. It is absent if the rate is unknown.
	RowsPerSecond *float64 `json:"rows_per_second,omitempty"`
}

// IsEntryID reports whether a text may be the id of an entry. The text "" means the newest entry.
func IsEntryID(id string) bool {
	at, seq, two := strings.Cut(id, "-")
	_, err := strconv.ParseUint(at, 10, 63)
	if two && err == nil {
		_, err = strconv.ParseUint(seq, 10, 63)
	}
	return id == "" || err == nil
}
