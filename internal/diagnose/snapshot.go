// Package diagnose finds the problems of an election and its jobs, and the remedies. It finds nodes that are silent, jobs that are late,
// failing or unwritten, and configurations that differ.
//
// Every verdict is a pure function of one [Snapshot]. The status page, the commands, the API, the metrics and the notifications call these
// functions, so that their verdicts agree. They formulate the texts themselves.
package diagnose

import (
	"slices"
	"strings"
	"time"

	"baton/internal/elector"
	"baton/internal/text"
)

// Snapshot is a node's view of its election and its jobs at one point in time. It contains no secrets. Every text in it may come from
// outside, so the status page must escape all texts.
type Snapshot struct {
	NodeID  string    `json:"node_id"`
	Version string    `json:"version"`
	LockKey string    `json:"lock_key"`
	Role    Role      `json:"role"`
	Now     time.Time `json:"now,omitzero"`     // the time at which the Snapshot was gathered, by this node's clock
	Leader  *Leader   `json:"leader"`           // null if no client holds the lock, or if the holder is unknown
	Vacancy string    `json:"vacancy,omitzero"` // without a leader, why no node may lead yet: "in quarantine for another 4s"
	// Held is the latest time until which the last term had its lease. It is zero if that is unknown.
	Held time.Time `json:"-"`
	// LastLeader is the leader when the state was last read, in its state at that time. It is set only if the state could not be refreshed
	// and the leader's lease has ended since then, so that the current leader is unknown.
	LastLeader *Leader `json:"last_leader,omitempty"`
	Paused     *Pause  `json:"paused,omitempty"` // no node may lead, and a node that still leads steps down
	Waiting    string  `json:"waiting,omitzero"` // why this node does not take the lead, if the reason is not that a leader exists
	// WaitingCode is the same reason for programs: "paused", "quarantine", "reserved", "priority", "aside", or "left".
	WaitingCode elector.Code `json:"waiting_code,omitzero"`
	Redis       Redis        `json:"redis"`
	Stores      []Store      `json:"stores,omitempty"` // further Redis servers that jobs read, by name
	Nodes       []Node       `json:"nodes"`
	// NodesRead is the number of nodes that were read, if Nodes contains only some of them because the list is too long. It is absent if
	// Nodes contains all nodes.
	NodesRead int     `json:"nodes_read,omitzero"`
	Locks     []Lock  `json:"locks,omitempty"` // the separate locks of some jobs
	Jobs      []Job   `json:"jobs"`
	Events    []Event `json:"events"` // the latest event first
	// RolloutWithin is the maximum time until a change of the jobs has reached every node.
	RolloutWithin text.Seconds `json:"rollout_within_seconds"`
	// LeftStages are staged changes that no job flushes any longer.
	LeftStages []LeftStage `json:"left_stages,omitempty"`
	// Problems contains the result of [Problems]. It is set when a Snapshot is encoded as JSON.
	Problems []Problem `json:"problems"`

	// Age and Error are set if the server could not refresh the Snapshot. Age is the age of the Snapshot, and Error is the reason.
	Age   text.Seconds `json:"age_seconds"`
	Error string       `json:"error,omitzero"`
}

// Role is the role that a node has in its election.
type Role string

// The roles.
const (
	RoleLeading    Role = "leading"
	RoleStandby    Role = "standby"
	RoleConnecting Role = "connecting" // the node has not reached Redis yet, or has lost the connection
)

// Leader describes the node that holds the lock.
type Leader struct {
	NodeID    string       `json:"node_id"`
	Owner     string       `json:"owner"` // the lock's value
	Epoch     int64        `json:"epoch"`
	Since     time.Time    `json:"since,omitzero"`
	LeaseLeft text.Seconds `json:"lease_left_seconds"` // negative if the lock does not expire
	TTL       text.Seconds `json:"ttl_seconds"`
	Ending    string       `json:"ending,omitzero"` // it gives the lead up, and waits for this: "the end of report"
	Foreign   bool         `json:"foreign"`         // the client is not baton, so only Owner and the lease are known
}

// Lock describes the election of a lock that some jobs have for themselves. It is separate from the node's own election.
type Lock struct {
	Key     string    `json:"key"`
	Leader  *Leader   `json:"leader"`
	Vacancy string    `json:"vacancy,omitzero"` // why no node may lead yet; set if there is no leader
	Held    time.Time `json:"-"`                // see Held in Snapshot
	Last    *Event    `json:"last_event,omitempty"`
}

// Pause is an operator's order that no node may lead, or that a job must not run.
type Pause struct {
	Since  time.Time `json:"since"`
	Reason string    `json:"reason"` // such as "by alice: upgrade"
	// Until is when the pause ends by itself. It is absent if only a resume ends the pause. All means that all jobs are paused. Until and
	// All are set only if the pause concerns jobs.
	Until time.Time `json:"until,omitzero"`
	All   bool      `json:"all,omitzero"`
}

// LeftStage describes changes of a key that were staged and that no job flushes any more. The reason is that the job was removed from the
// configuration, or that its key was changed.
type LeftStage struct {
	Store   string `json:"store,omitzero"` // the store that contains the key; absent for the Redis with the lock
	Key     string `json:"key"`
	Job     string `json:"job"` // the job that staged the changes
	BatchID string `json:"batch_id"`
	Records int64  `json:"records"`
}

// Retry describes the next attempt of a run that failed in its slot.
type Retry struct {
	Slot    time.Time `json:"slot"`
	Attempt int       `json:"attempt"`
	At      time.Time `json:"at"`
}

// Redis describes the state of the election's Redis, as this node sees it.
type Redis struct {
	Host  string    `json:"host"` // host and port, but never a password
	OK    bool      `json:"ok"`
	Error string    `json:"error,omitzero"`
	Since time.Time `json:"since,omitzero"` // the time since which Redis answers, or does not answer
}

// Store describes the state of another Redis that contains data of some jobs, as this node sees it.
type Store struct {
	Name string `json:"name"`
	Redis
}

// Answers reports whether a store answers. It returns false only if it is certain that the store does not answer, and true if its state is
// unknown.
func (s Snapshot) Answers(store string) bool {
	return !slices.ContainsFunc(s.Stores, func(one Store) bool { return one.Name == store && !one.OK })
}

// StateSilent is the state of a node that should have registered again but has not. The node died, hangs, or is cut off from Redis.
const StateSilent = "silent"

// SeenWithin limits the age of a node's last report about itself: a node whose report is older does not count as live. A node reports at
// its first poll after 25 seconds.
const SeenWithin = 35 * time.Second

// Silent reports whether a node counts as gone, because it has not reported for too long.
func (n Node) Silent() bool { return n.Stale || n.State == StateSilent }

// Word returns the name of the node's state as the status page, the commands and the API show it.
func (n Node) Word() string {
	switch {
	case n.Silent():
		return StateSilent
	case n.Observer:
		return "observer"
	case n.Aside != "":
		return "stands aside"
	}
	return n.State
}

// Node describes one node of the election.
type Node struct {
	ID         string `json:"id"`
	State      string `json:"state"`        // leading, standby or silent
	Led        bool   `json:"led,omitzero"` // for a silent node: whether it led when it last registered
	Version    string `json:"version"`
	ConfigHash string `json:"config_hash"`
	// Drift is the result of [Snapshot.Drifted]. It is set when a Snapshot is encoded as JSON.
	Drift       bool         `json:"drift"`
	Address     string       `json:"address"`
	Priority    int          `json:"priority"`
	Observer    bool         `json:"observer"`       // the node never leads, because node.candidate is false
	Aside       string       `json:"aside,omitzero"` // why it leaves the lead to others for a while: "for another 20s: ..."
	LastSeenAgo text.Seconds `json:"last_seen_seconds_ago"`
	Stale       bool         `json:"stale"`                // the node has not registered for so long that it counts as gone
	Instance    string       `json:"instance,omitzero"`    // the process that registered the node
	Twin        string       `json:"twin,omitzero"`        // another process with the same id, so that the two cannot be distinguished
	ClockAhead  text.Seconds `json:"clock_offset_seconds"` // how far its host's clock is ahead of Redis' clock; 0 below 100 ms
	Jobs        *int         `json:"jobs,omitempty"`       // the number of jobs in its configuration, under this lock; absent if unknown
	ConfigSince time.Time    `json:"config_since,omitzero"`
}

// Unscheduled says that the leader does not run a job of this node, because the leader's configuration does not contain the job.
type Unscheduled struct {
	Leader   string    `json:"leader"`
	Since    time.Time `json:"since,omitzero"` // the time since which both configurations are in force
	LateFrom time.Time `json:"late_from"`
}

// Words returns a text that says that the leader does not schedule the job, and names the leader. The text follows the job's name.
func (u Unscheduled) Words() string { return "not scheduled by " + u.Leader + ", which leads" }

// Job describes a configured job and its state.
type Job struct {
	Name          string    `json:"name"`
	Schedule      string    `json:"schedule"`                // as in the configuration
	ScheduleWords string    `json:"schedule_words,omitzero"` // such as "every 5 seconds"
	TimeZone      string    `json:"time_zone,omitzero"`
	Target        string    `json:"target,omitzero"`   // where a flush writes to, or the program that a command runs
	Store         string    `json:"store,omitzero"`    // the store that a flush reads; absent for the Redis with the lock
	Command       bool      `json:"command,omitzero"`  // the job runs a program; otherwise it is a flush
	Always        bool      `json:"always,omitzero"`   // the job has no slots, and runs as long as its node leads
	Lock          string    `json:"lock,omitzero"`     // the lock under which the job runs
	NextRun       time.Time `json:"next_run,omitzero"` // in the zone in which it is to be shown
	Overlap       string    `json:"overlap,omitzero"`  // forbid, queue_one, replace or allow
	Running       *Run      `json:"running"`           // the latest open run
	Open          []Run     `json:"open,omitempty"`    // all open runs, if there are several
	Retry         *Retry    `json:"retry,omitempty"`   // the next attempt
	LastRun       *Run      `json:"last_run"`
	// DueAt is when a run was or is due, if no run has succeeded since, see [Job.Due].
	DueAt time.Time `json:"due,omitzero"`
	// Awaited means that a run of the command is in progress under the current leader.
	Awaited bool `json:"awaited,omitzero"`
	// Unscheduled is set if the leader does not run this job. It is absent if the leader runs the job, or if that is unknown.
	Unscheduled *Unscheduled `json:"unscheduled,omitempty"`
	// Late is the result of [Job.IsLate]. It is set when a Snapshot is encoded as JSON.
	Late                Late   `json:"late,omitzero"`
	ConsecutiveFailures int    `json:"consecutive_failures"`
	Paused              *Pause `json:"paused,omitempty"` // the job's own pause, or the pause of all jobs
	Backlog             *int64 `json:"backlog"`          // number of changes that wait in Redis; null if unknown or no flush
	// BacklogUnknown is the reason why Backlog is unknown.
	BacklogUnknown string   `json:"backlog_unknown,omitzero"`
	LagSeconds     *float64 `json:"lag_seconds"` // the age of the oldest waiting change
	// DeadLetters is the number of dead letters in the database. It is the leader's last count, or the count that the command `baton
	// status` has made. It is absent if the letters were not counted.
	DeadLetters *int64 `json:"dead_letters,omitempty"`
	// Unaccepted is the number of rows that the job never wrote and that a pass has not changed, see baton job accept.
	Unaccepted int64 `json:"unaccepted_rows,omitzero"`
	// Comparable means that the job's keys can be compared with its table.
	Comparable bool `json:"comparable,omitzero"`
	// Operation is the newest verification or backfill, and Verified is the last verification that was completed.
	Operation *Operation `json:"operation,omitempty"`
	Verified  *Operation `json:"verified,omitempty"`
	// LateAfterSeconds is the configured overdue time that makes the job late. For the value 0 see [Job.LateAfter].
	LateAfterSeconds float64 `json:"late_after_seconds,omitzero"`
	// Definition is the job's resolved configuration in YAML, without secrets. Only callers that may see the outputs of jobs get it. Lists
	// of jobs do not contain it.
	Definition string `json:"definition,omitzero"`
}

// Run describes one execution of a job. A run in progress has no duration and no error yet. Its numbers of rows are the numbers that it has
// reported last.
type Run struct {
	ID       string       `json:"run_id,omitzero"`
	State    string       `json:"state"` // running, succeeded, failed, timed_out, cancelled, lost
	Trigger  string       `json:"trigger"`
	Attempt  int          `json:"attempt,omitzero"`
	By       string       `json:"by,omitzero"`     // the operator who ordered the run, with the reason
	Forced   bool         `json:"forced,omitzero"` // the job's overlap would have forbidden the run
	Slot     time.Time    `json:"slot,omitzero"`
	Started  time.Time    `json:"started,omitzero"`
	Duration text.Seconds `json:"duration_seconds"`
	Rows     int64        `json:"rows"`
	Deleted  int64        `json:"deleted,omitzero"` // the deleted rows among Rows
	Dead     int64        `json:"dead"`
	Batches  int64        `json:"batches,omitzero"`    // the number of batches of a run in progress
	Backlog  *int64       `json:"backlog,omitempty"`   // the number of changes that waited when the run began, if they were counted
	ExitCode *int         `json:"exit_code,omitempty"` // the exit code of a command that ended by itself
	Output   string       `json:"output,omitzero"`     // the end of a command's output
	Error    string       `json:"error,omitzero"`
	NodeID   string       `json:"node_id"`
	Epoch    int64        `json:"epoch"`
	Owner    string       `json:"-"` // the owner of the term, as a text for programs
	// Idle describes successive runs that found nothing to do, as one entry.
	Idle *Idle `json:"idle,omitempty"`
}

// Idle describes successive runs that found nothing to do.
type Idle struct {
	Runs  int       `json:"runs"`
	First time.Time `json:"first"` // the slot of the first run
}

// Event describes an event of the election's history. Most events are transitions of the election. The events "stream_joined",
// "stream_refused", "pass_began" and "pass_ended" concern the leader's captures. The event "rows_accepted" means that an operator has
// accepted rows as rows of a job. The event "row_undeleted" means that an operator has put a deleted row back.
type Event struct {
	At     time.Time `json:"at"`
	Event  string    `json:"event"` // won, lost, expired, stepped_down, released, restored, quarantined, paused, resumed
	NodeID string    `json:"node_id"`
	Epoch  int64     `json:"epoch"`
	// Code is the reason of the event, if the field Event does not say it: "lease_ended", "crashed", "balance", "abdicated" or "paused".
	// For an event of a capture it is a label value of the captures' metrics.
	Code   string `json:"code,omitzero"`
	Reason string `json:"reason,omitzero"`
	// Over is when the lease of an expired term ended. The next leader writes the event, possibly long after that time.
	Over time.Time `json:"over,omitzero"`
}

// Why returns the reason of the event. It returns "" if the field Event already says everything, or if the reason is unknown. The reason
// does not repeat the words of the fields Event and Code.
func (e Event) Why() string {
	words := map[string]string{
		"lease_ended": "its lease ran out", "crashed": "its process ended without releasing the lock",
		"balance": "to spread the locks", "abdicated": "abdicated",
	}[e.Code]
	switch {
	case e.Event == "quarantined" && e.Reason == "":
		return "redis restarted, failed over or lost its data, and a former leader may still trust its lease"
	case e.Event == "restored" && e.Reason == "":
		return "redis had lost the lock, and its leader restored it"
	case e.Reason == strings.ReplaceAll(e.Event, "_", " "):
		return words
	case words == "" || strings.HasPrefix(e.Reason, words+": "):
		return e.Reason
	case e.Reason == "" || e.Reason == words:
		return words
	}
	return words + ": " + e.Reason
}
