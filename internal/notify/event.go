package notify

import "time"

// Kind is the kind of an event.
type Kind string

// These are the values of Kind.
const (
	Failed        Kind = "failed"
	Recovered     Kind = "recovered"
	Missed        Kind = "missed"
	Late          Kind = "late"
	DeadLetters   Kind = "dead_letters"
	LeaderChanged Kind = "leader_changed"
	// Test is the kind of a test event, which an order sends to any target.
	Test Kind = "test"
)

// Event is the content of a notification. Other programs read its JSON, so the names of its fields must not change.
type Event struct {
	ID      string    `json:"id"` // the same id in every attempt to deliver the event
	Kind    Kind      `json:"event"`
	At      time.Time `json:"at"`
	Text    string    `json:"text"`    // one sentence for people
	NodeID  string    `json:"node_id"` // the leader; for a run, the node on which the run ran
	LockKey string    `json:"lock_key"`
	Epoch   int64     `json:"epoch,omitzero"`
	From    string    `json:"from,omitzero"` // the previous leader

	Job     string    `json:"job,omitzero"`
	RunID   string    `json:"run_id,omitzero"`
	Slot    time.Time `json:"slot,omitzero"`
	Attempt int       `json:"attempt,omitzero"`
	Trigger string    `json:"trigger,omitzero"`
	State   string    `json:"state,omitzero"`
	// Reason says why slots were missed, why a job is late, or why the leader changed.
	Reason              string `json:"reason,omitzero"`
	Error               string `json:"error,omitzero"`
	ExitCode            *int   `json:"exit_code,omitempty"`
	Count               int    `json:"count,omitzero"` // the number of missed slots or of dead letters
	ConsecutiveFailures int    `json:"consecutive_failures,omitzero"`
}
