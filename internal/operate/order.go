package operate

import (
	"context"
	"time"

	"baton/internal/diagnose"
	"baton/internal/text"
)

// Kind is what an order wants to be done.
type Kind string

// The kinds. Those of a job need Order.Job, those of dead letters Order.Letters or Order.Letter.
const (
	KindStepDown  Kind = "stepdown" // To: the successor; Lock: which election
	KindPause     Kind = "pause"    // no node leads
	KindResume    Kind = "resume"
	KindRun       Kind = "run"        // Force: whatever else of the job runs; RunID: see Order
	KindCancel    Kind = "cancel"     // RunID: that run alone
	KindPauseJob  Kind = "pause_job"  // Until: when it ends by itself; Job "": all jobs
	KindResumeJob Kind = "resume_job" // Job "": all jobs
	KindVerify    Kind = "verify"     // Sample, Rate, Repair, Examples; RunID: see Order
	KindBackfill  Kind = "backfill"   // Rate; RunID: see Order
	KindReplay    Kind = "replay"
	KindDrop      Kind = "drop"
	KindReload    Kind = "reload" // of the configuration of the node that is asked
	// KindTestNotify has the node that is asked send a test. Target: to that one alone.
	KindTestNotify Kind = "test_notify"
)

// Order is what is to be done, as data.
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
	// Wait is how long to wait for what was ordered to show; 0: as long as is usual, less: not.
	Wait time.Duration
	// Overwrite and Set are of replays: a row of the same key is written over although it may be
	// newer; inputs of the record are given anew, where nil stands for NULL.
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
	CodeDone    Code = "done"    // it has been carried out, and what it brings about has shown
	CodeAsked   Code = "asked"   // it is ordered, and was not waited for, or waits its turn
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
	// NodeID is who leads, or did what was asked.
	NodeID string `json:"node_id,omitzero"`
	Epoch  int64  `json:"epoch,omitzero"`
	// Took is the time from the order to what it brought about.
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
	// Letters is what became of each that was replayed.
	Letters []Replayed `json:"letters,omitempty"`
	// Dropped is how many dead letters are gone for good.
	Dropped int64 `json:"dropped,omitzero"`
	// Tests is what became of a test notification, by target.
	Tests []Tested `json:"tests,omitempty"`
}

// Tested is what became of a test notification to one target.
type Tested struct {
	Target string `json:"target"`
	OK     bool   `json:"ok"` // the target has taken it
	// Text is why it has not.
	Text string `json:"text,omitzero"`
}

// Replayed is what became of one dead letter.
type Replayed struct {
	LetterKey
	Outcome string `json:"outcome"`
	Text    string `json:"text"`
	OK      bool   `json:"ok"` // nothing is left to do
}

// Do carries out an order, and returns when it is done, or when ctx ends. Beside an error the
// outcome reports what was done before it.
type Do func(ctx context.Context, o Order) (Outcome, error)
