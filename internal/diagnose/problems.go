package diagnose

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

// Code is the kind of a problem.
type Code string

// The kinds of problems.
const (
	CodeNoLeader    Code = "no_leader"       // the lock is free
	CodeNoJobs      Code = "no_jobs"         // the lock is free, since no node has a job
	CodePaused      Code = "paused"          // an operator has paused the election
	CodeForeign     Code = "foreign_holder"  // a client that is not baton holds the lock
	CodeEnding      Code = "handing_over"    // the leader releases the lock, and waits for runs; or has just done so
	CodeNoStandby   Code = "no_standby"      // no other node could take over
	CodeSilent      Code = "node_silent"     // a node has not reported for long
	CodeTwin        Code = "node_twin"       // two processes have one node.id
	CodeClock       Code = "node_clock"      // the clock of a host is wrong
	CodeDrift       Code = "node_drift"      // a node has another configuration than the leader
	CodeFailing     Code = "job_failing"     // the last run that counts failed
	CodeLate        Code = "job_late"        // see [Job.IsLate]
	CodeUnscheduled Code = "job_unscheduled" // the leader's configuration does not have the job: see [Unscheduled]
	CodeDeadLetters Code = "dead_letters"    // records wait that did not fit their table
	CodeUnaccepted  Code = "rows_unaccepted" // a pass has left rows as they are that the job never wrote
	CodeLeftStage   Code = "stage_left"      // no job flushes the staged changes
	CodeRedis       Code = "redis_unavailable"
	CodeStore       Code = "store_unavailable" // jobs that read a store fail
)

// Problem is one problem, and the command to continue with. Page and command line make the words.
type Problem struct {
	Code  Code   `json:"code"`
	Grave bool   `json:"grave,omitzero"` // jobs do not run, or data does not arrive
	Lock  string `json:"lock,omitzero"`  // "": that of the Snapshot
	Node  string `json:"node,omitzero"`
	Job   string `json:"job,omitzero"`
	Key   string `json:"key,omitzero"`   // of a stage
	Store string `json:"store,omitzero"` // "": the Redis that has the lock
	// Since is when a late job was due, or zero.
	Since time.Time `json:"since,omitzero"`
	// Count counts failures, dead letters or records; 0: not counted.
	Count   int64  `json:"count,omitzero"`
	Late    Late   `json:"late,omitzero"` // of a job, also of a failing one
	Command string `json:"command"`
}

// Problems are all problems, the worst first; none if all is well.
func Problems(s Snapshot) []Problem {
	all := slices.Concat(s.electionProblems(), s.storeProblems(), s.jobProblems(), s.stageProblems(), s.nodeProblems())
	slices.SortStableFunc(all, func(a, b Problem) int { return cmp.Compare(rank(a), rank(b)) })
	return all
}

func rank(p Problem) int {
	if p.Grave {
		return 0
	}
	return 1
}

func (s Snapshot) electionProblems() (all []Problem) {
	if !s.Redis.OK && s.Redis.Error != "" {
		all = append(all, Problem{Code: CodeRedis, Grave: true, Command: "baton doctor"})
	}
	switch {
	case s.LastLeader != nil, s.Leader == nil && s.Error != "": // the leader is unknown
	case s.Leader == nil && s.Paused != nil:
		all = append(all, Problem{Code: CodePaused, Command: "baton resume"})
	case s.HandedOver("") != nil:
		all = append(all, Problem{Code: CodeEnding, Node: s.HandedOver("").NodeID, Command: "baton status"})
	case s.Leader == nil && s.Jobless():
		all = append(all, Problem{Code: CodeNoJobs, Command: "baton config check"})
	case s.Leader == nil:
		all = append(all, Problem{Code: CodeNoLeader, Grave: true, Command: "baton explain"})
	case s.Leader.Foreign:
		all = append(all, Problem{Code: CodeForeign, Grave: true, Command: "baton status --events"})
	case s.Leader.Ending != "":
		all = append(all, Problem{Code: CodeEnding, Node: s.Leader.NodeID, Command: "baton job list"})
	}
	for _, l := range s.Locks {
		switch over := s.HandedOver(l.Key); {
		case over != nil && s.Paused == nil:
			all = append(all, Problem{Code: CodeEnding, Lock: l.Key, Node: over.NodeID, Command: "baton status"})
		case l.Leader == nil && s.Paused == nil: // a pause is for all locks
			all = append(all, Problem{Code: CodeNoLeader, Grave: true, Lock: l.Key, Command: "baton explain --lock-key " + l.Key})
		case l.Leader == nil:
		case l.Leader.Foreign:
			all = append(all, Problem{Code: CodeForeign, Grave: true, Lock: l.Key, Command: "baton status --events --lock-key " + l.Key})
		case l.Leader.Ending != "":
			all = append(all, Problem{Code: CodeEnding, Lock: l.Key, Node: l.Leader.NodeID, Command: "baton job list"})
		}
	}
	return all
}

func (s Snapshot) jobProblems() (all []Problem) {
	now := s.Clock()
	for _, j := range s.Jobs {
		late := j.IsLate(now)
		p := Problem{Job: j.Name, Grave: true, Late: late, Command: s.WhatNow(j).Command(j)}
		if late != "" {
			p.Since = j.DueAt
		}
		if late == LateUnscheduled {
			p.Since, p.Node = j.Unscheduled.Since, j.Unscheduled.Leader
		}
		switch {
		case j.IsFailing():
			p.Code, p.Count = CodeFailing, int64(j.ConsecutiveFailures)
			all = append(all, p)
		case late != "":
			p.Code = CodeLate
			all = append(all, p)
		case j.Unscheduled != nil:
			p.Code, p.Grave, p.Node = CodeUnscheduled, false, j.Unscheduled.Leader
			all = append(all, p)
		}
		if j.Unaccepted > 0 {
			all = append(all, Problem{Code: CodeUnaccepted, Job: j.Name, Count: j.Unaccepted,
				Command: "baton job preview " + j.Name + " --all"})
		}
		switch {
		case j.DeadLetters != nil && *j.DeadLetters > 0:
			command := "baton dead list --count --job " + j.Name
			all = append(all, Problem{Code: CodeDeadLetters, Job: j.Name, Count: *j.DeadLetters, Command: command})
		case j.DeadLetters == nil && j.LastRun != nil && j.LastRun.Dead > 0:
			all = append(all, Problem{Code: CodeDeadLetters, Job: j.Name, Command: "baton dead list --job " + j.Name})
		}
	}
	return all
}

func (s Snapshot) storeProblems() (all []Problem) {
	for _, store := range s.Stores {
		if !store.OK {
			all = append(all, Problem{Code: CodeStore, Grave: true, Store: store.Name, Command: "baton doctor"})
		}
	}
	return all
}

func (s Snapshot) stageProblems() (all []Problem) {
	for _, l := range s.LeftStages {
		all = append(all, Problem{
			Code: CodeLeftStage, Job: l.Job, Store: l.Store, Key: l.Key, Count: l.Records, Command: "baton stage list",
		})
	}
	return all
}

func (s Snapshot) nodeProblems() (all []Problem) {
	add := func(code Code, n Node, command string) {
		all = append(all, Problem{Code: code, Grave: code == CodeTwin, Node: n.ID, Command: command})
	}
	for _, n := range s.Nodes {
		switch {
		case n.Silent():
			add(CodeSilent, n, "systemctl status baton")
			continue
		case n.Twin != "":
			add(CodeTwin, n, "baton doctor")
		}
		if s.Drifted(n) && !s.Unsettled(n) {
			add(CodeDrift, n, "baton reload")
		}
		if n.IsClockOff() {
			add(CodeClock, n, "baton doctor")
		}
	}
	if s.Leader != nil && !s.Leader.Foreign && len(s.Nodes) > 0 && s.Count().Ready == 0 {
		all = append(all, Problem{Code: CodeNoStandby, Command: "systemctl status baton"})
	}
	return all
}

// Next is the next step for a job that fails or is late.
type Next string

// The next steps for a job.
const (
	NextLead   Next = "lead"   // it cannot run until a node leads
	NextRead   Next = "read"   // read why its last run failed
	NextOutput Next = "output" // the same: only its output shows why
	NextResume Next = "resume" // it is paused
	NextMatch  Next = "match"  // the leader does not have the job: compare the configurations
	NextWait   Next = "wait"   // it is at work: watch whether the backlog shrinks
	NextLook   Next = "look"   // nothing shows why: its history may
)

// WhatNow is the next step for a job that fails or is late.
func (s Snapshot) WhatNow(j Job) Next {
	leader := s.LeaderOf(j)
	switch {
	case j.Paused != nil && j.Unscheduled == nil: // until then it does not run, whatever other problem it has
		return NextResume
	case j.IsFailing() && j.Command && j.LastRun != nil && j.LastRun.Error == "":
		return NextOutput
	case j.IsFailing():
		return NextRead
	case leader == nil || leader.Foreign:
		return NextLead
	case j.Unscheduled != nil:
		return NextMatch
	case j.Running != nil:
		return NextWait
	}
	return NextLook
}

// Command is the command line for it.
func (n Next) Command(j Job) string {
	job := j.Name
	switch n {
	case NextLead:
		return "baton explain"
	case NextOutput:
		return "baton job logs " + job
	case NextResume:
		return j.EndsPause()
	case NextMatch:
		return "baton status"
	case NextWait:
		return "baton job show " + job
	}
	return "baton job history " + job
}

// EndsPause is the command that ends the job's pause.
func (j Job) EndsPause() string {
	if j.Paused != nil && j.Paused.All {
		return "baton job resume --all"
	}
	return "baton job resume " + j.Name
}

// LeaderOf is the leader under the lock of a job; nil if none leads.
func (s Snapshot) LeaderOf(j Job) *Leader {
	for _, l := range s.Locks {
		if l.Key == j.Lock {
			return l.Leader
		}
	}
	return s.Leader
}

// Clock is now, by the clock of the node that gathered s.
func (s Snapshot) Clock() time.Time {
	if s.Now.IsZero() {
		return time.Now()
	}
	return s.Now.Add(s.Age.Duration())
}

// MarshalJSON adds the verdicts: programs read them from the answer.
func (s Snapshot) MarshalJSON() ([]byte, error) {
	s.Problems = append([]Problem{}, Problems(s)...)
	now := s.Clock()
	s.Jobs, s.Nodes = slices.Clone(s.Jobs), slices.Clone(s.Nodes)
	for i := range s.Jobs {
		s.Jobs[i].Late = s.Jobs[i].IsLate(now)
	}
	for i := range s.Nodes {
		s.Nodes[i].Drift = s.Drifted(s.Nodes[i])
	}
	type plain Snapshot
	return json.Marshal(plain(s))
}
