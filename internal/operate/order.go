package operate

import (
	"context"
	"time"

	"baton/internal/diagnose"
	"baton/internal/text"
)

// Kind names the action that an order asks for.
type Kind string

// The kinds. Those of a job need Order.Job, those of dead letters Order.Letters or Order.Letter.
const (
	KindStepDown  Kind = "stepdown" // To: the successor; Lock: which election
	KindPause     Kind = "pause"    // no node leads
	KindResume    Kind = "resume"
	KindRun       Kind = "run"        // Force: whatever else of the job runs; RunID: see Order
	KindCancel    Kind = "cancel"     // RunID: that run alone
	KindPauseJob  Kind = "pause_job"  // Until: when it ends without a resume; Job "": all jobs
	KindResumeJob Kind = "resume_job" // Job "": all jobs
	KindVerify    Kind = "verify"     // Sample, Rate, Repair, Examples; RunID: see Order
	KindBackfill  Kind = "backfill"   // Rate; RunID: see Order
	KindReplay    Kind = "replay"
	KindDrop      Kind = "drop"
	KindReload    Kind = "reload" // of the configuration of the node that gets the order
	// KindTestNotify makes the node that gets the order send a test notification. Target limits it to that one target.
	KindTestNotify Kind = "test_notify"
)

// Order is an order as data.
type Order struct {
	Kind Kind
	// By is who gives the order, and Reason why, for the history. Neither proves anything.
	By, Reason string
	Lock       string // the election's key; "": the node's own
	To         string
	Job        string
	// RunID is the one run to cancel, or the UUID that a run gets: it is the idempotency key of an order to run a job.
	RunID    string
	Letter   string // the id of a dead letter, or the beginning of one
	Database string // where the letter is; "": wherever it is found
	Letters  []LetterKey
	Force    bool
	Until    time.Time
	Target   string // of notifications; "": all of them
	// Wait is how long to wait for the effect of the order; 0 is the usual time, less than 0 does not wait.
	Wait time.Duration
	// Overwrite and Set are of replays: a replay overwrites a row of the same key although that may be newer; it replaces inputs of the
	// record, where nil stands for NULL.
	Overwrite bool
	Set       map[string]*string
	// Sample is the part of all keys to verify, above 0 and up to 1; 0: all. Rate is how many keys a second
	// are read at most; 0: any number. Repair has what differs flushed again. Examples is how many
	// differences of each kind are kept; 0: a few.
	Sample   float64
	Rate     int
	Repair   bool
	Examples int
	// Progress, if set, is called with a part of the outcome while an order takes long.
	Progress func(Outcome)
}

// Signature says who gives the order, and why: "by alice: upgrade".
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

// LetterKey says which dead letter.
type LetterKey struct {
	ID       string `json:"id"`
	Job      string `json:"job"`
	Database string `json:"database"`
}

// Code says what an order came to.
type Code string

// The codes.
const (
	CodeDone    Code = "done"    // carried out, and its effect has shown
	CodeAsked   Code = "asked"   // ordered; Do did not wait for the effect, or the order waits its turn
	CodeNothing Code = "nothing" // there was nothing to do
)

// Outcome is what an order came to.
type Outcome struct {
	// Code says it to programs: done, asked or nothing.
	Code Code `json:"code"`
	// Text says it in a sentence.
	Text string `json:"text"`
	// RunID is of the run that was begun.
	RunID string `json:"run_id,omitzero"`
	// Queued: that run waits for another one to end.
	Queued bool `json:"queued,omitzero"`
	// NodeID is the node that leads, or that carried out the order.
	NodeID string `json:"node_id,omitzero"`
	Epoch  int64  `json:"epoch,omitzero"`
	// Took is the time from the order to its effect.
	Took text.Seconds `json:"took_seconds,omitzero"`
	// From led before.
	From string `json:"from,omitzero"`
	// Was is the pause that there was before, Still the one of all jobs that goes on.
	Was   *diagnose.Pause `json:"was,omitempty"`
	Still *diagnose.Pause `json:"still,omitempty"`
	// Since is when the pause began.
	Since time.Time `json:"since,omitzero"`
	// Runs were cancelled, and end; Retry is the attempt that will not be made.
	Runs  []string `json:"runs,omitempty"`
	Retry int      `json:"retry,omitzero"`
	// Run is the run that was begun, as it stands.
	Run *diagnose.Run `json:"run,omitempty"`
	// Letters are the outcomes of replayed letters, one each.
	Letters []Replayed `json:"letters,omitempty"`
	// Dropped is how many dead letters are gone for good.
	Dropped int64 `json:"dropped,omitzero"`
	// Tests are the outcomes of a test notification, by target.
	Tests []Tested `json:"tests,omitempty"`
}

// Tested is what became of a test notification to one target.
type Tested struct {
	Target string `json:"target"`
	OK     bool   `json:"ok"` // the target has taken it
	// Text is why it has not.
	Text string `json:"text,omitzero"`
}

// Replayed is the outcome for one dead letter.
type Replayed struct {
	LetterKey
	Outcome string `json:"outcome"`
	Text    string `json:"text"`
	OK      bool   `json:"ok"` // nothing is left to do
}

// Do carries out an order, and returns when it is done, or when ctx ends. Beside an error the outcome reports the part that was done
// before it.
type Do func(ctx context.Context, o Order) (Outcome, error)
