// Package wire is the interface between the nodes of the linearizability test and the test that judges them. It contains the setup of a
// node, and the form of the history that a node writes.
package wire

import (
	"time"

	"baton/internal/heartbeat"
)

// Design is the implementation of the lock.
type Design string

// These are the designs.
const (
	Lua      Design = "lua"      // scripts on one Redis
	Sentinel Design = "sentinel" // the same scripts behind Sentinels
	SetNX    Design = "setnx"    // SET NX without scripts
	Redisson Design = "redisson" // the hash format of Redisson's RLock
	Quorum   Design = "quorum"   // a majority of independent masters
)

// Setup is the whole configuration of a node. It is the node's only argument, as JSON.
type Setup struct {
	NodeID  string
	Design  Design
	LockKey string
	// Redis contains the URLs of the masters. Only a quorum has several masters. With Sentinels it is empty.
	Redis []string
	// Sentinels contains the addresses of the Sentinels, and Master is the master's name there.
	Sentinels []string
	Master    string

	Timing heartbeat.Timing
	Poll   time.Duration
	Seed   uint64 // of the random durations of terms
	// History is the path of the file with the node's operations and acts. FloorFile is the path of the file with the highest epoch that
	// the node knows.
	History, FloorFile string
}

// Op is an operation of the lock.
type Op string

// These are the operations of elector.Lock.
const (
	Acquire Op = "acquire"
	Renew   Op = "renew"
	Release Op = "release"
	Raise   Op = "raise"
)

// Outcome is the result of an operation.
type Outcome string

// These are the outcomes. If an operation has no outcome, its process died during the operation, which is the same as an unknown outcome.
const (
	Won     Outcome = "won"
	Held    Outcome = "held"
	Wait    Outcome = "wait"
	Done    Outcome = "done" // renewed, released, raised
	Lost    Outcome = "lost"
	Refused Outcome = "refused"
	Unknown Outcome = "unknown"
)

// Kind is the kind of a line in a history.
type Kind string

// These are the kinds of lines.
const (
	Call   Kind = "call"   // an operation begins
	Return Kind = "return" // an operation has ended
	Enter  Kind = "enter"  // the leader's work begins
	Act    Kind = "act"    // the work is inside its trust window
	Leave  Kind = "leave"  // the work has returned
	Die    Kind = "die"    // the process ends because the work could not end in time
	Event  Kind = "event"  // an event of the elector; Text describes it
)

// Line is one line of a history. Times are nanoseconds of CLOCK_BOOTTIME, because all processes of a machine share this clock.
type Line struct {
	Kind Kind  `json:"kind"`
	At   int64 `json:"at"` // of a call: a time before it began; of a return: a time after it ended
	// At of an act is a time before the leader was found to be trusted. Until is a time after that.
	Until   int64   `json:"until,omitempty"`
	N       int64   `json:"n,omitempty"` // number of the call in this process
	Op      Op      `json:"op,omitempty"`
	Owner   string  `json:"owner,omitempty"`
	Epoch   int64   `json:"epoch,omitempty"`
	Outcome Outcome `json:"outcome,omitempty"`
	Text    string  `json:"text,omitempty"`
	// Meddling marks a call that no elector would send.
	Meddling bool `json:"meddling,omitempty"`
	// Wall is the wall clock of the process in Unix seconds. Only calls have it.
	Wall int64 `json:"wall,omitempty"`
}
