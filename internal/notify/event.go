package notify

import "time"

// Kind is the subject of an event.
type Kind string

// The kinds.
const (
	Failed        Kind = "failed"
	Recovered     Kind = "recovered"
	Missed        Kind = "missed"
	Late          Kind = "late"
	DeadLetters   Kind = "dead_letters"
	LeaderChanged Kind = "leader_changed"
	// Test is sent by an order, to any target.
	Test Kind = "test"
)

// Event is the content of a notification. Programs of others read its JSON: so names must stay.
type Event struct {
	ID      string    `json:"id"` // the same in every attempt to deliver it
	Kind    Kind      `json:"event"`
	At      time.Time `json:"at"`
	Text    string    `json:"text"`    // one sentence for people
	NodeID  string    `json:"node_id"` // the leader; for a run, the node that it ran on
	LockKey string    `json:"lock_key"`
	Epoch   int64     `json:"epoch,omitzero"`
	From    string    `json:"from,omitzero"` // the leader before

	Job     string    `json:"job,omitzero"`
	RunID   string    `json:"run_id,omitzero"`
	Slot    time.Time `json:"slot,omitzero"`
	Attempt int       `json:"attempt,omitzero"`
	Trigger string    `json:"trigger,omitzero"`
	State   string    `json:"state,omitzero"`
	// Reason is why slots were missed, a job is late, or a leader changed.
	Reason              string `json:"reason,omitzero"`
	Error               string `json:"error,omitzero"`
	ExitCode            *int   `json:"exit_code,omitempty"`
	Count               int    `json:"count,omitzero"` // of missed slots, or of dead letters
	ConsecutiveFailures int    `json:"consecutive_failures,omitzero"`
}
