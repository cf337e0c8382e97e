// Package diagnose says what is wrong with an election and its jobs, and what to do about it:
// who is silent, what is late, failing or not written, and which configuration has drifted.
//
// Every verdict is a pure function over one [Snapshot]. Page, command line, API, metrics and
// notifications ask these functions and word the answers themselves, so that they agree.
package diagnose

import (
	"slices"
	"strings"
	"time"

	"baton/internal/elector"
	"baton/internal/text"
)

// Snapshot is what one node knows of its election and jobs at one moment. Nothing
// in it is secret, and every text in it may come from outside: the page escapes all.
type Snapshot struct {
	NodeID  string    `json:"node_id"`
	Version string    `json:"version"`
	LockKey string    `json:"lock_key"`
	Role    Role      `json:"role"`
	Now     time.Time `json:"now,omitzero"`     // when it was gathered, by this node's clock
	Leader  *Leader   `json:"leader"`           // null: no client holds the lock, or it is not known who does
	Vacancy string    `json:"vacancy,omitzero"` // without a leader, why no node may lead yet: "in quarantine for another 4s"
	// Held is until when the last term had its lease at most; zero: not known.
	Held time.Time `json:"-"`
	// LastLeader is who led when the state was last read, as it was then, of a state that
	// could not be refreshed: its lease has ended since, and who leads is not known.
	LastLeader *Leader `json:"last_leader,omitempty"`
	Paused     *Pause  `json:"paused,omitempty"` // no node may lead; a leader that there still is steps down
	Waiting    string  `json:"waiting,omitzero"` // why this node does not take the lead, where no leader is the reason
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

	// Age and Error are set by the server when it answers with a Snapshot that it
	// could not refresh: how old that is, and what went wrong.
	Age   text.Seconds `json:"age_seconds"`
	Error string       `json:"error,omitzero"`
}

// Role is what a node does in its election.
type Role string

// The roles.
const (
	RoleLeading    Role = "leading"
	RoleStandby    Role = "standby"
	RoleConnecting Role = "connecting" // has not reached Redis yet, or has lost it
)

// Leader is who holds the lock.
type Leader struct {
	NodeID    string       `json:"node_id"`
	Owner     string       `json:"owner"` // the lock's value
	Epoch     int64        `json:"epoch"`
	Since     time.Time    `json:"since,omitzero"`
	LeaseLeft text.Seconds `json:"lease_left_seconds"` // below 0: the lock has no time to live
	TTL       text.Seconds `json:"ttl_seconds"`
	Ending    string       `json:"ending,omitzero"` // it gives the lead up, and waits for this: "the end of report"
	Foreign   bool         `json:"foreign"`         // held by a client that is not baton: only Owner and the lease are known
}

// Lock is an election of its own beside the node's, for some of the jobs.
type Lock struct {
	Key     string    `json:"key"`
	Leader  *Leader   `json:"leader"`
	Vacancy string    `json:"vacancy,omitzero"` // without a leader, why no node may lead yet
	Held    time.Time `json:"-"`                // as of the Snapshot
	Last    *Event    `json:"last_event,omitempty"`
}

// Pause is that an operator wants no leader, or that a job is not run.
type Pause struct {
	Since  time.Time `json:"since"`
	Reason string    `json:"reason"` // "by alice: upgrade"
	// Until is when it ends by itself; absent: it does not. All: all jobs are paused.
	// Both are of jobs alone.
	Until time.Time `json:"until,omitzero"`
	All   bool      `json:"all,omitzero"`
}

// LeftStage is what a flush has staged beside a key that no job of the configuration has any
// more: the job is gone, or its key is another one.
type LeftStage struct {
	Store   string `json:"store,omitzero"` // where the key is; absent: in the Redis that has the lock
	Key     string `json:"key"`
	Job     string `json:"job"` // that has staged it
	BatchID string `json:"batch_id"`
	Records int64  `json:"records"`
}

// Retry is another attempt of a slot that is still to come.
type Retry struct {
	Slot    time.Time `json:"slot"`
	Attempt int       `json:"attempt"`
	At      time.Time `json:"at"`
}

// Redis is how the election's store answers this node.
type Redis struct {
	Host  string    `json:"host"` // host and port, never a password
	OK    bool      `json:"ok"`
	Error string    `json:"error,omitzero"`
	Since time.Time `json:"since,omitzero"` // since when it answers, or does not
}

// Store is how a further Redis answers this node, in which some jobs have their data.
type Store struct {
	Name string `json:"name"`
	Redis
}

// Answers reports whether a store is not known to be away.
func (s Snapshot) Answers(store string) bool {
	return !slices.ContainsFunc(s.Stores, func(one Store) bool { return one.Name == store && !one.OK })
}

// StateSilent is the state of a node that should have registered by now, and has not: it has died, hangs, or is cut off.
const StateSilent = "silent"

// SeenWithin is the age up to which what a node has reported of itself is the latest: it reports
// every 25 seconds, and when it polls next.
const SeenWithin = 35 * time.Second

// Silent reports whether a node should be taken for gone.
func (n Node) Silent() bool { return n.Stale || n.State == StateSilent }

// Word is what every surface calls the state of the node.
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
	Led        bool   `json:"led,omitzero"` // of one that is silent: it led when it last registered
	Version    string `json:"version"`
	ConfigHash string `json:"config_hash"`
	// Drift is the verdict [Snapshot.Drifted]; set where a Snapshot is written as JSON.
	Drift       bool         `json:"drift"`
	Address     string       `json:"address"`
	Priority    int          `json:"priority"`
	Observer    bool         `json:"observer"`       // never leads: node.candidate is false
	Aside       string       `json:"aside,omitzero"` // why it leaves the lead to others for a while: "for another 20s: ..."
	LastSeenAgo text.Seconds `json:"last_seen_seconds_ago"`
	Stale       bool         `json:"stale"`                // not seen for so long that it should be taken for gone
	Instance    string       `json:"instance,omitzero"`    // of the process that registered this
	Twin        string       `json:"twin,omitzero"`        // another process that has the same id: the two cannot be distinguished
	ClockAhead  text.Seconds `json:"clock_offset_seconds"` // of its host's clock from Redis', ahead is above 0; reported from 100 ms on
	Jobs        *int         `json:"jobs,omitempty"`       // in its configuration, under the lock; absent: it does not say
	ConfigSince time.Time    `json:"config_since,omitzero"`
}

// Unscheduled is that the leader's configuration has not a job that this node's has.
type Unscheduled struct {
	Leader   string    `json:"leader"`
	Since    time.Time `json:"since,omitzero"` // since when both configurations are in force
	LateFrom time.Time `json:"late_from"`
}

// Words says it, and by whom, after the job's name.
func (u Unscheduled) Words() string { return "not scheduled by " + u.Leader + ", which leads" }

// Job is one configured job and how it stands.
type Job struct {
	Name          string    `json:"name"`
	Schedule      string    `json:"schedule"`                // as configured
	ScheduleWords string    `json:"schedule_words,omitzero"` // "every 5 seconds"
	TimeZone      string    `json:"time_zone,omitzero"`
	Target        string    `json:"target,omitzero"`   // where a flush writes to, or the program that runs
	Store         string    `json:"store,omitzero"`    // from which a flush reads; absent: the Redis that has the lock
	Command       bool      `json:"command,omitzero"`  // it runs a program; else it is a flush
	Always        bool      `json:"always,omitzero"`   // it has no slots, and runs for as long as its node leads
	Lock          string    `json:"lock,omitzero"`     // under which it runs
	NextRun       time.Time `json:"next_run,omitzero"` // shown in the zone that it carries
	Overlap       string    `json:"overlap,omitzero"`  // forbid, queue_one, replace or allow
	Running       *Run      `json:"running"`           // the latest of those that go on
	Open          []Run     `json:"open,omitempty"`    // all that go on, if several do
	Retry         *Retry    `json:"retry,omitempty"`   // the attempt that is to come
	LastRun       *Run      `json:"last_run"`
	// DueAt is when a run was, or is, due with no success since: see [Job.Due].
	DueAt time.Time `json:"due,omitzero"`
	// Awaited: a run of the command goes on under the leader that there is.
	Awaited bool `json:"awaited,omitzero"`
	// Unscheduled: the leader runs no such job; absent if it does, or if that is not known.
	Unscheduled *Unscheduled `json:"unscheduled,omitempty"`
	// Late is the verdict [Job.IsLate]; set where a Snapshot is written as JSON.
	Late                Late   `json:"late,omitzero"`
	ConsecutiveFailures int    `json:"consecutive_failures"`
	Paused              *Pause `json:"paused,omitempty"` // itself, or with all others
	Backlog             *int64 `json:"backlog"`          // changes that wait in Redis; null: not a flush, or not known
	// BacklogUnknown is why Backlog is not known.
	BacklogUnknown string   `json:"backlog_unknown,omitzero"`
	LagSeconds     *float64 `json:"lag_seconds"` // age of the oldest of them
	// DeadLetters are those that wait in the database, as the leader last counted them, or
	// baton status now; absent: it has not been counted.
	DeadLetters *int64 `json:"dead_letters,omitempty"`
	// Unaccepted is how many rows that the job never wrote a pass has left alone: see baton job accept.
	Unaccepted int64 `json:"unaccepted_rows,omitzero"`
	// Comparable: its keys can be compared with its table.
	Comparable bool `json:"comparable,omitzero"`
	// Operation is the last verification or backfill that has begun, Verified the last verification that
	// came to its end.
	Operation *Operation `json:"operation,omitempty"`
	Verified  *Operation `json:"verified,omitempty"`
	// LateAfterSeconds is how overdue the job is late, as configured; 0: see [Job.LateAfter].
	LateAfterSeconds float64 `json:"late_after_seconds,omitzero"`
}

// Run is one execution of a job; one that still runs has no duration or error yet, and
// the rows that it had written when it last reported.
type Run struct {
	ID       string       `json:"run_id,omitzero"`
	State    string       `json:"state"` // running, succeeded, failed, timed_out, cancelled, lost
	Trigger  string       `json:"trigger"`
	Attempt  int          `json:"attempt,omitzero"`
	By       string       `json:"by,omitzero"`     // who asked for it, and why
	Forced   bool         `json:"forced,omitzero"` // its job's overlap would have refused it
	Slot     time.Time    `json:"slot,omitzero"`
	Started  time.Time    `json:"started,omitzero"`
	Duration text.Seconds `json:"duration_seconds"`
	Rows     int64        `json:"rows"`
	Deleted  int64        `json:"deleted,omitzero"` // of the rows
	Dead     int64        `json:"dead"`
	Batches  int64        `json:"batches,omitzero"`    // of one that still runs
	Backlog  *int64       `json:"backlog,omitempty"`   // changes that waited when it began, if that is known
	ExitCode *int         `json:"exit_code,omitempty"` // of a command that has ended by itself
	Output   string       `json:"output,omitzero"`     // the end of what a command printed
	Error    string       `json:"error,omitzero"`
	NodeID   string       `json:"node_id"`
	Epoch    int64        `json:"epoch"`
	Owner    string       `json:"-"` // of the term; a text for machines
	// Idle: several runs that found nothing to do, of which this is the last.
	Idle *Idle `json:"idle,omitempty"`
}

// Idle are runs, one after the other, that found nothing to do.
type Idle struct {
	Runs  int       `json:"runs"`
	First time.Time `json:"first"` // the slot of the first
}

// Event is one transition of the election, or something that befell the captures of its leader: stream_joined, stream_refused,
// pass_began, pass_ended.
type Event struct {
	At     time.Time `json:"at"`
	Event  string    `json:"event"` // won, lost, expired, stepped_down, released, restored, quarantined, paused, resumed
	NodeID string    `json:"node_id"`
	Epoch  int64     `json:"epoch"`
	// Code is why, where Event does not say it all: lease_ended, crashed, balance, abdicated, paused; of captures a label value of
	// their metrics.
	Code   string `json:"code,omitzero"`
	Reason string `json:"reason,omitzero"`
	// Over is when the lease of an expired term ended: the next leader writes the event, maybe long after.
	Over time.Time `json:"over,omitzero"`
}

// Why is why it happened; "" where Event says it all, or nothing is known. What Event or Code says is
// not said again.
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
