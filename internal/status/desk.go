package status

import (
	"context"
	"errors"
	"time"
)

// Desk is what a node answers beyond its Snapshot, and asks of its servers only when
// somebody wants to see it. Every method returns soon after ctx ends. [ErrNotFound]: there
// is no such job, run or letter.
type Desk interface {
	// History is a job's finished runs and missed slots, the newest first, at most n,
	// older than the entry with the id before; "" begins with the newest.
	History(ctx context.Context, job, before string, n int) ([]Entry, error)
	// Output is what a run has printed, as far as it is kept.
	Output(ctx context.Context, job, runID string) (Output, error)
	// Letters are dead letters, the newest first, at most n. What one database answers is
	// there also if another one fails.
	Letters(ctx context.Context, f LetterFilter, n int) ([]Letter, error)
	// Samples are how far the flushes were behind, the oldest first, later than since.
	Samples(ctx context.Context, since time.Time) ([]Sample, error)
}

// Errors of a Desk and of a Do, matched by errors.Is. Any other is the servers'.
var (
	// ErrNotFound: there is no such thing.
	ErrNotFound = errors.New("not found")
	// ErrRefused: as things stand it cannot be done; the error says why, and what to do.
	ErrRefused = errors.New("refused")
	// ErrNobodyLeads: it needs a leader.
	ErrNobodyLeads = errors.New("nobody leads")
)

// Entry is one of a job's history: a finished run, or slots that were missed.
type Entry struct {
	ID     string    `json:"id"` // says where to go on
	At     time.Time `json:"at"`
	Run    *Run      `json:"run,omitempty"`
	Missed *Missed   `json:"missed,omitempty"`
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

// Output is what a run has printed.
type Output struct {
	Text    string `json:"text"`
	Dropped int64  `json:"dropped,omitzero"` // bytes before Text that are not kept
	Running bool   `json:"running,omitzero"` // more may come
}

// LetterFilter picks dead letters: those of which everything that is set here is true.
type LetterFilter struct {
	Job      string
	Database string
	ID       string // or the beginning of one; then the record is whole
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

// Sample is how far the flushes of one lock's leader were behind at one moment.
type Sample struct {
	At   time.Time        `json:"at"`
	Jobs map[string]Level `json:"jobs"`
}

// Level is how far one flush was behind.
type Level struct {
	LagSeconds float64 `json:"lag_seconds"`
	Backlog    int64   `json:"backlog"`
}

// Action is something that an operator has done.
type Action string

// The actions. Those on a job need Order.Job, those on dead letters Order.Letter.
const (
	ActionStepDown  Action = "stepdown" // To: the successor; Lock: which election
	ActionPause     Action = "pause"    // nobody leads
	ActionResume    Action = "resume"
	ActionRun       Action = "run"        // Force: whatever else of the job runs
	ActionCancel    Action = "cancel"     // RunID: that run alone
	ActionPauseJob  Action = "pause_job"  // Until: when it ends by itself; Job "": all jobs
	ActionResumeJob Action = "resume_job" // Job "": all jobs
	ActionReplay    Action = "replay"
	ActionDrop      Action = "drop"
	ActionReload    Action = "reload" // this node's configuration
)

// Order is an action and what it needs.
type Order struct {
	Action Action
	By     string // who wants it, and why: for the history
	Lock   string // "": the node's own
	To     string
	Job    string
	RunID  string
	Letter string
	Force  bool
	Until  time.Time
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
}

// Do carries out an order, and returns when it is done, or when ctx ends.
type Do func(ctx context.Context, o Order) (Outcome, error)
