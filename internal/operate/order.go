package operate

import (
	"context"
	"time"

	"baton/internal/diagnose"
	"baton/internal/text"
)

// Kind says which action an order asks for.
type Kind string

// These are the kinds of orders. Orders about a job need Order.Job, and orders about dead letters need Order.Letters or Order.Letter.
const (
	KindStepDown  Kind = "stepdown" // To is the successor; Lock selects the election
	KindPause     Kind = "pause"    // afterwards no node leads
	KindResume    Kind = "resume"
	KindRun       Kind = "run"        // Force ignores other runs of the job; for RunID see Order
	KindCancel    Kind = "cancel"     // RunID limits the order to that run
	KindPauseJob  Kind = "pause_job"  // Until is the time when the pause ends without a resume; Job "" means all jobs
	KindResumeJob Kind = "resume_job" // Job "": all jobs
	KindVerify    Kind = "verify"     // uses Sample, Rate, Repair, Examples; for RunID see Order
	KindBackfill  Kind = "backfill"   // uses Rate; for RunID see Order
	KindAccept    Kind = "accept"     // Changes and Deletes are the counts of rows that belong to the job from now on
	KindReplay    Kind = "replay"
	KindDrop      Kind = "drop"
	KindUndelete  Kind = "undelete" // Row is the id of the deleted row to put back, and Database is its database
	KindReload    Kind = "reload"   // the node that gets the order reads its configuration again
	// KindTestNotify makes the node that gets the order send a test notification. Target limits the test to one target.
	KindTestNotify Kind = "test_notify"
)

// Order contains the data of an order.
type Order struct {
	Kind Kind
	// By is the name of the user who gives the order, and Reason is the reason. Both are for the history, and prove nothing.
	By, Reason string
	Lock       string // the key of the election's lock; "" means the node's own lock
	To         string
	Job        string
	// RunID is the run to cancel, or the UUID for a new run. It is the idempotency key of an order to run a job.
	RunID    string
	Letter   string // the id of a dead letter, or its beginning
	Row      int64  // the id of a deleted row
	Database string // the database of the letter or the row; "" means that all databases are searched
	Letters  []LetterKey
	Force    bool
	Until    time.Time
	Target   string // the target of notifications; "" means all targets
	// Wait is the maximum time to wait for the effect of the order. 0 means the default time, and a negative value means no wait.
	Wait time.Duration
	// Overwrite and Set are for replays. With Overwrite a replay overwrites a row with the same key, even if that row may be newer. Set
	// replaces inputs of the record; nil stands for NULL.
	Overwrite bool
	Set       map[string]*string
	// Sample is the share of all keys to verify, above 0 and up to 1; 0 means all keys. Rate is the maximum number of keys that are read
	// per second; 0 means no limit. With Repair, rows that differ are flushed again. Examples is the number of differences of each kind
	// that are kept; 0 means a few.
	Sample   float64
	Rate     int
	Repair   bool
	Examples int
	// Changes and Deletes are the counts of an Acceptance that the author of the order has seen. The order is refused if more rows than
	// these wait when it arrives.
	Changes, Deletes int64
	// Progress, if set, is called with a part of the outcome while an order takes long.
	Progress func(Outcome)
}

// Signature returns a text that says who gives the order and why, such as "by alice: upgrade".
func (o Order) Signature() string {
	text := "by " + o.By
	if o.By == "" {
		text = "by somebody"
	}
	if o.Reason != "" {
		text += ": " + o.Reason
	}
	return text
}

// LetterKey identifies a dead letter.
type LetterKey struct {
	ID       string `json:"id"`
	Job      string `json:"job"`
	Database string `json:"database"`
}

// Code is a word that describes the result of an order.
type Code string

// These are the values of Code.
const (
	CodeDone    Code = "done"    // the order was carried out, and its effect was seen
	CodeAsked   Code = "asked"   // Do did not wait for the effect of the order, or the order waits for other work
	CodeNothing Code = "nothing" // there was nothing to do
)

// Outcome is the result of an order.
type Outcome struct {
	// Code is the result for programs: done, asked or nothing.
	Code Code `json:"code"`
	// Text is the result as a sentence.
	Text string `json:"text"`
	// RunID is the ID of the run that was begun.
	RunID string `json:"run_id,omitzero"`
	// Queued means that the run waits until another run ends.
	Queued bool `json:"queued,omitzero"`
	// NodeID is the node that leads, or the node that carried out the order.
	NodeID string `json:"node_id,omitzero"`
	Epoch  int64  `json:"epoch,omitzero"`
	// Took is the time from the order to its effect.
	Took text.Seconds `json:"took_seconds,omitzero"`
	// From is the node that led before.
	From string `json:"from,omitzero"`
	// Was is the pause that existed before. Still is the pause of all jobs that is still in force.
	Was   *diagnose.Pause `json:"was,omitempty"`
	Still *diagnose.Pause `json:"still,omitempty"`
	// Since is when the pause began.
	Since time.Time `json:"since,omitzero"`
	// Runs are the runs that were cancelled. They may still be ending. Retry is the number of the attempt that will not be made.
	Runs  []string `json:"runs,omitempty"`
	Retry int      `json:"retry,omitzero"`
	// Run is the current state of the run that was begun.
	Run *diagnose.Run `json:"run,omitempty"`
	// Letters are the outcomes of the replayed letters, one for each letter.
	Letters []Replayed `json:"letters,omitempty"`
	// Dropped is the number of dead letters that were removed permanently.
	Dropped int64 `json:"dropped,omitzero"`
	// DeletedRow is the row that was put back.
	DeletedRow *DeletedRow `json:"deleted_row,omitempty"`
	// Acceptance is the state after an order to accept rows.
	Acceptance *Acceptance `json:"acceptance,omitempty"`
	// Tests are the outcomes of a test notification, one for each target.
	Tests []Tested `json:"tests,omitempty"`
}

// Tested is the result of a test notification to one target.
type Tested struct {
	Target string `json:"target"`
	OK     bool   `json:"ok"` // the target has accepted the test
	// Text says why the target has not accepted the test.
	Text string `json:"text,omitzero"`
}

// Replayed is the outcome of a replay for one dead letter.
type Replayed struct {
	LetterKey
	Outcome string `json:"outcome"`
	Text    string `json:"text"`
	OK      bool   `json:"ok"` // nothing remains to be done
}

// Do carries out an order. It returns when the order is carried out, or when ctx ends. If it returns an error, the outcome contains the
// part that was carried out before the error.
type Do func(ctx context.Context, o Order) (Outcome, error)
