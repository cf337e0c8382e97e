// Package wire is the interface between the nodes of the linearizability test and their
// judge: the setup of a node, and the history that it writes.
package wire

import (
	"time"

	"baton/internal/heartbeat"
)

// Design is how the lock is made.
type Design string

// The designs.
const (
	Lua      Design = "lua"      // scripts on one Redis
	Sentinel Design = "sentinel" // the same behind Sentinels
	SetNX    Design = "setnx"    // no scripting
	Redisson Design = "redisson" // the hash format of Redisson's RLock
	Quorum   Design = "quorum"   // a majority of independent masters
)

// Setup is the whole configuration of a node, as JSON in its one argument.
type Setup struct {
	NodeID  string
	Design  Design
	LockKey string
	// Redis are the URLs of the masters. Only a quorum has several. With Sentinels it is
	// empty.
	Redis []string
	// Sentinels are their addresses, and Master the name that they know it by.
	Sentinels []string
	Master    string

	Timing heartbeat.Timing
	Poll   time.Duration
	Seed   uint64 // of how long terms last
	// History is the file of the node's operations and acts. FloorFile keeps the highest
	// epoch that the node knows.
	History, FloorFile string
}

// Op is an operation of the lock.
type Op string

// The operations of elector.Lock.
const (
	Acquire Op = "acquire"
	Renew   Op = "renew"
	Release Op = "release"
	Raise   Op = "raise"
)

// Outcome is how an operation ended.
type Outcome string

// The outcomes. An operation that has none was cut short by the death of its process,
// which is as good as unknown.
const (
	Won     Outcome = "won"
	Held    Outcome = "held"
	Wait    Outcome = "wait"
	Done    Outcome = "done" // renewed, released, raised
	Lost    Outcome = "lost"
	Refused Outcome = "refused"
	Unknown Outcome = "unknown"
)

// Kind is the kind of a line.
type Kind string

// The kinds of lines.
const (
	Call   Kind = "call"   // an operation begins
	Return Kind = "return" // it has ended
	Enter  Kind = "enter"  // the leader's work begins
	Act    Kind = "act"    // it is inside its trust window
	Leave  Kind = "leave"  // it has returned
	Die    Kind = "die"    // the process ends because the work could not in time
	Event  Kind = "event"  // the elector tells: Text
)

// Line is one line of a history. Moments are nanoseconds of CLOCK_BOOTTIME, which is
// one clock for all processes of a machine.
type Line struct {
	Kind Kind  `json:"kind"`
	At   int64 `json:"at"` // of a call: before it began; of a return: after it ended
	// At of an act is before the moment at which the leader was found to be trusted; Until is
	// after it.
	Until   int64   `json:"until,omitempty"`
	N       int64   `json:"n,omitempty"` // which call of this process
	Op      Op      `json:"op,omitempty"`
	Owner   string  `json:"owner,omitempty"`
	Epoch   int64   `json:"epoch,omitempty"`
	Outcome Outcome `json:"outcome,omitempty"`
	Text    string  `json:"text,omitempty"`
	// Meddling marks a call that no elector would make.
	Meddling bool `json:"meddling,omitempty"`
	// Wall is the wall clock of the process in Unix seconds, in calls only.
	Wall int64 `json:"wall,omitempty"`
}
