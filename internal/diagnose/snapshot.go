// Package diagnose finds the problems of an election and its jobs, and the remedies: which nodes are silent, which jobs are late, failing
// or unwritten, and which configuration has drifted.
//
// Every verdict is a pure function over one [Snapshot]. Page, command line, API, metrics and notifications call these functions and word
// the answers themselves, so that they agree.
package diagnose

import (
	"slices"
	"strings"
	"time"

	"baton/internal/elector"
	"baton/internal/text"
)

// Snapshot is one node's knowledge of its election and jobs at one moment. Nothing in it is secret, and every text in it may come from
// outside: the page escapes all.
type Snapshot struct {
	NodeID  string    `json:"node_id"`
	Version string    `json:"version"`
	LockKey string    `json:"lock_key"`
	Role    Role      `json:"role"`
	Now     time.Time `json:"now,omitzero"`     // when it was gathered, by this node's clock
	Leader  *Leader   `json:"leader"`           // null: no client holds the lock, or the holder is unknown
	Vacancy string    `json:"vacancy,omitzero"` // without a leader, why no node may lead yet: "in quarantine for another 4s"
	// Held is the latest time until which the last term had its lease; zero: unknown.
	Held time.Time `json:"-"`
	// LastLeader is the leader at the last reading, in its state of then, if the state could not be refreshed: its lease has ended since,
	// and the present leader is unknown.
	LastLeader *Leader `json:"last_leader,omitempty"`
	Paused     *Pause  `json:"paused,omitempty"` // no node may lead; a remaining leader steps down
	Waiting    string  `json:"waiting,omitzero"` // why this node does not take the lead, if that is not because of a leader
	// WaitingCode says the same to programs: "paused", "quarantine", "reserved", "priority", "aside", or "left".
	WaitingCode elector.Code `json:"waiting_code,omitzero"`
	Redis       Redis        `json:"redis"`
	Stores      []Store      `json:"stores,omitempty"` // further Redis that jobs read, by name
	Nodes       []Node       `json:"nodes"`
	Locks       []Lock       `json:"locks,omitempty"` // that some jobs have of their own
	Jobs        []Job        `json:"jobs"`
	Events      []Event      `json:"events"` // the latest first
	// RolloutWithin is how long a change of the jobs may take to reach every node.
	RolloutWithin text.Seconds `json:"rollout_within_seconds"`
	// LeftStages are changes that no job flushes any more.
	LeftStages []LeftStage `json:"left_stages,omitempty"`
	// Problems are the verdicts of [Problems]; set where a Snapshot is written as JSON.
	Problems []Problem `json:"problems"`

	// Age and Error are set by the server when it could not refresh the Snapshot: its age, and the reason.
	Age   text.Seconds `json:"age_seconds"`
	Error string       `json:"error,omitzero"`
}

// Role is the part of a node in its election.
type Role string

// The roles.
const (
	RoleLeading    Role = "leading"
	RoleStandby    Role = "standby"
	RoleConnecting Role = "connecting" // has not reached Redis yet, or has lost it
)

// Leader is the holder of the lock.
type Leader struct {
	NodeID    string       `json:"node_id"`
	Owner     string       `json:"owner"` // the lock's value
	Epoch     int64        `json:"epoch"`
	Since     time.Time    `json:"since,omitzero"`
	LeaseLeft text.Seconds `json:"lease_left_seconds"` // below 0: the lock has no time to live
	TTL       text.Seconds `json:"ttl_seconds"`
	Ending    string       `json:"ending,omitzero"` // it gives the lead up, and waits for this: "the end of report"
	Foreign   bool         `json:"foreign"`         // a client that is not baton: only Owner and the lease are known
}

// Lock is an election of its own beside the node's, for some of the jobs.
type Lock struct {
	Key     string    `json:"key"`
	Leader  *Leader   `json:"leader"`
	Vacancy string    `json:"vacancy,omitzero"` // without a leader, why no node may lead yet
	Held    time.Time `json:"-"`                // as of the Snapshot
	Last    *Event    `json:"last_event,omitempty"`
}

// Pause is an operator's order that no node leads, or that a job does not run.
type Pause struct {
	Since  time.Time `json:"since"`
	Reason string    `json:"reason"` // "by alice: upgrade"
	// Until is when it ends without a resume; absent: never. All: all jobs are paused. Both are of jobs alone.
	Until time.Time `json:"until,omitzero"`
	All   bool      `json:"all,omitzero"`
}

// LeftStage holds staged changes beside a key that no job of the configuration has any more: the job is gone, or its key has changed.
type LeftStage struct {
	Store   string `json:"store,omitzero"` // the store of the key; absent: the Redis that has the lock
	Key     string `json:"key"`
	Job     string `json:"job"` // the job that has staged it
	BatchID string `json:"batch_id"`
	Records int64  `json:"records"`
}

// Retry is the next attempt of a slot.
type Retry struct {
	Slot    time.Time `json:"slot"`
	Attempt int       `json:"attempt"`
	At      time.Time `json:"at"`
}

// Redis is the state of the election's store, as this node sees it.
type Redis struct {
	Host  string    `json:"host"` // host and port, never a password
	OK    bool      `json:"ok"`
	Error string    `json:"error,omitzero"`
	Since time.Time `json:"since,omitzero"` // since when it answers, or does not
}

// Store is the state of a further Redis with data of some jobs, as this node sees it.
type Store struct {
	Name string `json:"name"`
	Redis
}

// Answers is false if a store is certainly away.
func (s Snapshot) Answers(store string) bool {
	return !slices.ContainsFunc(s.Stores, func(one Store) bool { return one.Name == store && !one.OK })
}

// StateSilent is the state of a node that should have registered by now, and has not: it has died, hangs, or is cut off.
const StateSilent = "silent"

// SeenWithin is the age up to which a node's report about itself is current: it reports every 25 seconds, at its next poll.
const SeenWithin = 35 * time.Second

// Silent reports whether a node counts as gone.
func (n Node) Silent() bool { return n.Stale || n.State == StateSilent }

// Word is the name of the node's state on every surface.
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

// Node is one node of the election.
type Node struct {
	ID         string `json:"id"`
	State      string `json:"state"`        // leading, standby or silent
	Led        bool   `json:"led,omitzero"` // for a silent node: it led when it last registered
	Version    string `json:"version"`
	ConfigHash string `json:"config_hash"`
	// Drift is the verdict [Snapshot.Drifted]; set where a Snapshot is written as JSON.
	Drift       bool         `json:"drift"`
	Address     string       `json:"address"`
	Priority    int          `json:"priority"`
	Observer    bool         `json:"observer"`       // never leads: node.candidate is false
	Aside       string       `json:"aside,omitzero"` // why it leaves the lead to others for a while: "for another 20s: ..."
	LastSeenAgo text.Seconds `json:"last_seen_seconds_ago"`
	Stale       bool         `json:"stale"`                // not seen for so long that it counts as gone
	Instance    string       `json:"instance,omitzero"`    // of the process that registered this
	Twin        string       `json:"twin,omitzero"`        // another process that has the same id: the two cannot be distinguished
	ClockAhead  text.Seconds `json:"clock_offset_seconds"` // of its host's clock from Redis', ahead is above 0; reported from 100 ms on
	Jobs        *int         `json:"jobs,omitempty"`       // in its configuration, under the lock; absent: not reported
	ConfigSince time.Time    `json:"config_since,omitzero"`
}

// Unscheduled means that the leader's configuration lacks a job of this node's.
type Unscheduled struct {
	Leader   string    `json:"leader"`
	Since    time.Time `json:"since,omitzero"` // since when both configurations are in force
	LateFrom time.Time `json:"late_from"`
}

// Words describes that, and names the leader, after the job's name.
func (u Unscheduled) Words() string { return "not scheduled by " + u.Leader + ", which leads" }

// Job is one configured job and its state.
type Job struct {
	Name          string    `json:"name"`
	Schedule      string    `json:"schedule"`                // as configured
	ScheduleWords string    `json:"schedule_words,omitzero"` // "every 5 seconds"
	TimeZone      string    `json:"time_zone,omitzero"`
	Target        string    `json:"target,omitzero"`   // where a flush writes to, or the program that runs
	Store         string    `json:"store,omitzero"`    // the store that a flush reads; absent: the Redis that has the lock
	Command       bool      `json:"command,omitzero"`  // it runs a program; else it is a flush
	Always        bool      `json:"always,omitzero"`   // it has no slots, and runs for as long as its node leads
	Lock          string    `json:"lock,omitzero"`     // the lock that it runs under
	NextRun       time.Time `json:"next_run,omitzero"` // shown in the zone that it carries
	Overlap       string    `json:"overlap,omitzero"`  // forbid, queue_one, replace or allow
	Running       *Run      `json:"running"`           // the latest open run
	Open          []Run     `json:"open,omitempty"`    // all open runs, if there are several
	Retry         *Retry    `json:"retry,omitempty"`   // the next attempt
	LastRun       *Run      `json:"last_run"`
	// DueAt is when a run was, or is, due without a success since: see [Job.Due].
	DueAt time.Time `json:"due,omitzero"`
	// Awaited: a run of the command goes on under the present leader.
	Awaited bool `json:"awaited,omitzero"`
	// Unscheduled: the leader runs no such job; absent if it does, or if that is unknown.
	Unscheduled *Unscheduled `json:"unscheduled,omitempty"`
	// Late is the verdict [Job.IsLate]; set where a Snapshot is written as JSON.
	Late                Late   `json:"late,omitzero"`
	ConsecutiveFailures int    `json:"consecutive_failures"`
	Paused              *Pause `json:"paused,omitempty"` // the job's own, or the one of all jobs
	Backlog             *int64 `json:"backlog"`          // changes that wait in Redis; null: not a flush, or unknown
	// BacklogUnknown is the reason why Backlog is unknown.
	BacklogUnknown string   `json:"backlog_unknown,omitzero"`
	LagSeconds     *float64 `json:"lag_seconds"` // age of the oldest of them
	// DeadLetters wait in the database, by the leader's last count, or by that of baton status now; absent: not counted.
	DeadLetters *int64 `json:"dead_letters,omitempty"`
	// Unaccepted is how many rows that the job never wrote a pass has left as they are: see baton job accept.
	Unaccepted int64 `json:"unaccepted_rows,omitzero"`
	// Comparable: its keys can be compared with its table.
	Comparable bool `json:"comparable,omitzero"`
	// Operation is the newest verification or backfill, Verified the last verification that was completed.
	Operation *Operation `json:"operation,omitempty"`
	Verified  *Operation `json:"verified,omitempty"`
	// LateAfterSeconds is the configured overdue time from which the job is late; 0: see [Job.LateAfter].
	LateAfterSeconds float64 `json:"late_after_seconds,omitzero"`
	// Definition is its configuration as resolved, in YAML, without any secret; for those who may see outputs.
	Definition string `json:"definition,omitzero"`
}

// Run is one execution of a job. An open run has no duration or error yet, and the rows of its last report.
type Run struct {
	ID       string       `json:"run_id,omitzero"`
	State    string       `json:"state"` // running, succeeded, failed, timed_out, cancelled, lost
	Trigger  string       `json:"trigger"`
	Attempt  int          `json:"attempt,omitzero"`
	By       string       `json:"by,omitzero"`     // the operator who ordered it, and why
	Forced   bool         `json:"forced,omitzero"` // the job's overlap would have refused it
	Slot     time.Time    `json:"slot,omitzero"`
	Started  time.Time    `json:"started,omitzero"`
	Duration text.Seconds `json:"duration_seconds"`
	Rows     int64        `json:"rows"`
	Deleted  int64        `json:"deleted,omitzero"` // of the rows
	Dead     int64        `json:"dead"`
	Batches  int64        `json:"batches,omitzero"`    // of an open run
	Backlog  *int64       `json:"backlog,omitempty"`   // changes that waited when it began, if counted
	ExitCode *int         `json:"exit_code,omitempty"` // of a command that ended of its own accord
	Output   string       `json:"output,omitzero"`     // the end of a command's output
	Error    string       `json:"error,omitzero"`
	NodeID   string       `json:"node_id"`
	Epoch    int64        `json:"epoch"`
	Owner    string       `json:"-"` // of the term; a text for machines
	// Idle: this is the last of several runs that found nothing to do.
	Idle *Idle `json:"idle,omitempty"`
}

// Idle are runs, one after the other, that found nothing to do.
type Idle struct {
	Runs  int       `json:"runs"`
	First time.Time `json:"first"` // the slot of the first
}

// Event is one transition of the election, or an event of its leader's captures: stream_joined, stream_refused, pass_began, pass_ended.
type Event struct {
	At     time.Time `json:"at"`
	Event  string    `json:"event"` // won, lost, expired, stepped_down, released, restored, quarantined, paused, resumed
	NodeID string    `json:"node_id"`
	Epoch  int64     `json:"epoch"`
	// Code is the reason, if Event alone is not enough: lease_ended, crashed, balance, abdicated, paused; of captures a label value of
	// their metrics.
	Code   string `json:"code,omitzero"`
	Reason string `json:"reason,omitzero"`
	// Over is when the lease of an expired term ended: the next leader writes the event, maybe long after.
	Over time.Time `json:"over,omitzero"`
}

// Why is the reason of the event; "" if Event says it all, or the reason is unknown. It does not repeat the words of Event or Code.
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
