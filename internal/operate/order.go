package operate

import (
	"context"
	"time"

	"baton/internal/diagnose"
)

// Kind is something that an operator has done.
type Kind string

// The actions. Those on a job need Order.Job, those on dead letters Order.Letter.
const (
	KindStepDown  Kind = "stepdown" // To: the successor; Lock: which election
	KindPause     Kind = "pause"    // nobody leads
	KindResume    Kind = "resume"
	KindRun       Kind = "run"        // Force: whatever else of the job runs
	KindCancel    Kind = "cancel"     // RunID: that run alone
	KindPauseJob  Kind = "pause_job"  // Until: when it ends by itself; Job "": all jobs
	KindResumeJob Kind = "resume_job" // Job "": all jobs
	KindReplay    Kind = "replay"
	KindDrop      Kind = "drop"
	KindReload    Kind = "reload" // this node's configuration
)

// Order is an action and what it needs.
type Order struct {
	Kind   Kind
	By     string // who wants it, and why: for the history
	Lock   string // "": the node's own
	To     string
	Job    string
	RunID  string
	Letter string
	// Database is where the letter is; "": wherever it is found.
	Database string
	Force    bool
	Until    time.Time
	// Wait is how long to wait for what was ordered to show; 0: what is usual, less: not.
	Wait time.Duration
	// Letters are those to replay or to drop, instead of Letter.
	Letters []LetterKey
	// Overwrite and Set are of replays: see baton dead replay.
	Overwrite bool
	Set       map[string]*string
}

// LetterKey says which dead letter.
type LetterKey struct {
	ID       string `json:"id"`
	Job      string `json:"job"`
	Database string `json:"database"`
}

// Outcome is what an order came to.
type Outcome struct {
	// Text says it in a sentence.
	Text string `json:"text"`
	// RunID is of the run that was begun.
	RunID string `json:"run_id,omitzero"`
	// Queued: that run waits for another one to end.
	Queued bool `json:"queued,omitzero"`
	// NodeID is who leads, or did what was asked.
	NodeID string `json:"node_id,omitzero"`
	Epoch  int64  `json:"epoch,omitzero"`
	TookMS int64  `json:"took_ms,omitzero"`
	// From led before.
	From string `json:"from,omitzero"`
	// Was is the pause that there was before, Still the one of all jobs that goes on.
	Was   *diagnose.Pause `json:"was,omitempty"`
	Still *diagnose.Pause `json:"still,omitempty"`
	// Since is when the pause began.
	Since time.Time `json:"since,omitzero"`
	// Runs were told to end; Retry is the attempt that will not be made.
	Runs  []string `json:"runs,omitempty"`
	Retry int      `json:"retry,omitzero"`
	// Run is the run that was begun, as it stands.
	Run *diagnose.Run `json:"run,omitempty"`
	// Letters is what became of each that was replayed.
	Letters []Replayed `json:"letters,omitempty"`
	// Dropped is how many dead letters are gone for good.
	Dropped int64 `json:"dropped,omitzero"`
}

// Replayed is what became of one dead letter.
type Replayed struct {
	LetterKey
	Outcome string `json:"outcome"`
	Text    string `json:"text"`
	OK      bool   `json:"ok"` // nothing is left to do
}

// Do carries out an order, and returns when it is done, or when ctx ends.
type Do func(ctx context.Context, o Order) (Outcome, error)
