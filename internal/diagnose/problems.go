package diagnose

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

// Code names the kind of a problem, for programs.
type Code string

// These are the kinds of problems.
const (
	CodeNoLeader    Code = "no_leader"       // the lock is free
	CodeNoJobs      Code = "no_jobs"         // the lock is free because no node has a job
	CodePaused      Code = "paused"          // an operator has paused the election
	CodeForeign     Code = "foreign_holder"  // a client that is not baton holds the lock
	CodeEnding      Code = "handing_over"    // the leader releases the lock and waits for runs, or has just released the lock
	CodeNoStandby   Code = "no_standby"      // no other node could take over
	CodeSilent      Code = "node_silent"     // a node has not registered for a long time
	CodeTwin        Code = "node_twin"       // two processes have the same node.id
	CodeClock       Code = "node_clock"      // the clock of a host is wrong
	CodeNodesCut    Code = "nodes_cut"       // the list of nodes is too long, see [Snapshot.NodesRead]
	CodeDrift       Code = "node_drift"      // the configuration of a node differs from the leader's
	CodeFailing     Code = "job_failing"     // the last relevant run failed
	CodeLate        Code = "job_late"        // see [Job.IsLate]
	CodeUnscheduled Code = "job_unscheduled" // the leader's configuration does not contain the job, see [Unscheduled]
	CodeDeadLetters Code = "dead_letters"    // there are records that did not fit their table
	CodeUnaccepted  Code = "rows_unaccepted" // a pass has not changed rows that the job never wrote
	CodeLeftStage   Code = "stage_left"      // no job flushes the staged changes
	CodeRedis       Code = "redis_unavailable"
	CodeStore       Code = "store_unavailable" // the jobs that read a store fail
)

// Problem describes one problem, with the command to run next. It contains no sentences: the status page and the commands formulate their
// own text.
type Problem struct {
	Code  Code   `json:"code"`
	Grave bool   `json:"grave,omitzero"` // jobs do not run, or data does not arrive
	Lock  string `json:"lock,omitzero"`  // "" means the lock of the Snapshot
	Node  string `json:"node,omitzero"`
	Job   string `json:"job,omitzero"`
	Key   string `json:"key,omitzero"`   // the key of a stage
	Store string `json:"store,omitzero"` // "": the Redis that has the lock
	// Since is when a late job was due, or zero.
	Since time.Time `json:"since,omitzero"`
	// Count is the number of failures, dead letters, records, or nodes that were read. 0 means that nothing was counted.
	Count   int64  `json:"count,omitzero"`
	Late    Late   `json:"late,omitzero"` // why the job is late; also set for a failing job
	Command string `json:"command"`
}

// Problems returns all problems, the worst problem first. The list is empty if there are no problems.
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
		case l.Leader == nil && s.Paused == nil: // a pause applies to all locks
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
	if s.NodesRead > 0 {
		all = append(all, Problem{Code: CodeNodesCut, Count: int64(s.NodesRead), Command: "baton doctor"})
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
	// A node that could take over may be among the nodes that are not shown.
	if s.NodesRead == 0 && s.Leader != nil && !s.Leader.Foreign && len(s.Nodes) > 0 && s.Count().Ready == 0 {
		all = append(all, Problem{Code: CodeNoStandby, Command: "systemctl status baton"})
	}
	return all
}

// Next is the next step that an operator should take for a job that fails or is late.
type Next string

// These are the next steps that WhatNow returns for a job.
const (
	NextLead   Next = "lead"   // the job cannot run until a node leads
	NextRead   Next = "read"   // read why the last run failed
	NextOutput Next = "output" // also read why the last run failed, which only its output shows
	NextResume Next = "resume" // the job is paused
	NextMatch  Next = "match"  // the leader's configuration does not contain the job: compare the configurations
	NextWait   Next = "wait"   // the job is running: watch whether the backlog becomes smaller
	NextLook   Next = "look"   // the state shows no reason, but the history may
)

// WhatNow returns the next step that an operator should take for a job that fails or is late.
func (s Snapshot) WhatNow(j Job) Next {
	leader := s.LeaderOf(j)
	switch {
	case j.Paused != nil && j.Unscheduled == nil: // a paused job does not run, regardless of its other problems
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

// Command returns the command line that performs this step for a job.
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

// EndsPause returns the command that ends the job's pause.
func (j Job) EndsPause() string {
	if j.Paused != nil && j.Paused.All {
		return "baton job resume --all"
	}
	return "baton job resume " + j.Name
}

// LeaderOf returns the leader under the lock of a job, or nil if no node leads.
func (s Snapshot) LeaderOf(j Job) *Leader {
	for _, l := range s.Locks {
		if l.Key == j.Lock {
			return l.Leader
		}
	}
	return s.Leader
}

// Clock returns the present time by the clock of the node that gathered the snapshot.
func (s Snapshot) Clock() time.Time {
	if s.Now.IsZero() {
		return time.Now()
	}
	return s.Now.Add(s.Age.Duration())
}

// Undefined returns a copy of the jobs without their definitions, because the definitions would be more than half of a long list of jobs.
func Undefined(jobs []Job) []Job {
	jobs = slices.Clone(jobs)
	for i := range jobs {
		jobs[i].Definition = ""
	}
	return jobs
}

// MarshalJSON encodes the Snapshot. It adds the problems and other verdicts, so that programs need not find them, and omits the definitions
// of the jobs.
func (s Snapshot) MarshalJSON() ([]byte, error) {
	s.Problems = append([]Problem{}, Problems(s)...)
	now := s.Clock()
	s.Jobs, s.Nodes = Undefined(s.Jobs), slices.Clone(s.Nodes)
	for i := range s.Jobs {
		s.Jobs[i].Late = s.Jobs[i].IsLate(now)
	}
	for i := range s.Nodes {
		s.Nodes[i].Drift = s.Drifted(s.Nodes[i])
	}
	type plain Snapshot
	return json.Marshal(plain(s))
}
