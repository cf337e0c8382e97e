package status

import (
	"baton/internal/diagnose"
)

// What pages and API show; see package diagnose.
type (
	// Snapshot is what one node knows of its election and jobs at one moment.
	Snapshot = diagnose.Snapshot
	// Role is what a node does in its election.
	Role = diagnose.Role
	// Leader is who holds the lock.
	Leader = diagnose.Leader
	// Lock is an election of its own beside the node's.
	Lock = diagnose.Lock
	// Pause is that nobody may lead, or that a job is not run.
	Pause = diagnose.Pause
	// LeftStage is what is staged beside a key that no job has any more.
	LeftStage = diagnose.LeftStage
	// Retry is another attempt of a slot that is still to come.
	Retry = diagnose.Retry
	// Redis is how the election's store answers this node.
	Redis = diagnose.Redis
	// Node is one node of the election.
	Node = diagnose.Node
	// Job is one configured job and how it stands.
	Job = diagnose.Job
	// Run is one execution of a job.
	Run = diagnose.Run
	// Event is one transition of the election.
	Event = diagnose.Event
)

// Roles and states of nodes.
const (
	RoleLeading    = diagnose.RoleLeading
	RoleStandby    = diagnose.RoleStandby
	RoleConnecting = diagnose.RoleConnecting
	StateMissing   = diagnose.StateMissing
	StateSilent    = diagnose.StateSilent
)

// SeenWithin is the age up to which what a node has reported of itself is the latest.
const SeenWithin = diagnose.SeenWithin
