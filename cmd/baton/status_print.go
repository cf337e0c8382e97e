package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"baton/cmd/baton/internal/jobcmd"
	"baton/cmd/baton/internal/show"
	"baton/internal/diagnose"
	"baton/internal/text"
)

// statusTables prints the state for people.
type statusTables struct {
	*show.Table
	s diagnose.Snapshot
}

func printStatus(out io.Writer, s diagnose.Snapshot) error {
	t := statusTables{show.NewTable(out), s}
	t.leader()
	t.dataLine()
	t.hints()
	t.locks()
	t.nodes()
	t.jobs()
	return t.Flush()
}

func (t statusTables) print(format string, args ...any) {
	_ = show.Say(t, format, args...) // Flush returns a write error
}

func (t statusTables) leader() {
	s := t.s
	switch l := s.Leader; {
	case l == nil && s.LastLeader == nil && s.Error != "":
		t.print("Lock %q: %s\n", s.LockKey, show.Paint(t, show.Uneasy, "the leader is unknown"))
	case s.LastLeader != nil:
		t.print("Lock %q: %s\n", s.LockKey, show.Paint(t, show.Uneasy, s.Vacancy))
	case l == nil && s.Paused != nil:
		t.print("Lock %q: %s: paused %s, for %s\n", s.LockKey, show.Paint(t, show.Uneasy, "no node leads"),
			s.Paused.Reason, text.Duration(s.Now.Sub(s.Paused.Since)))
	case l == nil && s.Vacancy != "":
		t.print("Lock %q: %s: %s\n", s.LockKey, show.Paint(t, show.Bad, "no node leads"), s.Vacancy)
	case l == nil:
		t.print("Lock %q: %s\n", s.LockKey, show.Paint(t, show.Bad, "no node leads"))
	case l.Foreign:
		t.print("Lock %q: %s (owner %s), %s\n", s.LockKey, show.Paint(t, show.Bad, "held by a client that is not baton"),
			l.Owner, leaseLeft(l.LeaseLeft))
	default:
		t.print("Lock %q: %s, epoch %d, for %s, %s\n", s.LockKey, show.Paint(t, show.Good, l.NodeID+" leads"), l.Epoch,
			text.Duration(s.Now.Sub(l.Since)), leaseLeft(l.LeaseLeft))
	}
	if s.Leader != nil && s.Paused != nil {
		t.print("Paused %s: %s is to stop\n", s.Paused.Reason, cmp.Or(s.Leader.NodeID, s.Leader.Owner))
	}
}

// locks prints a table of the separate locks that some jobs have.
func (t statusTables) locks() {
	if len(t.s.Locks) > 0 {
		t.print("\nLOCK\tNODE\tEPOCH\tFOR\tLEASE LEFT\n")
	}
	for _, lock := range t.s.Locks {
		switch l := lock.Leader; {
		case l == nil:
			t.print("%s\t%s: %s\t-\t-\t-\n", lock.Key, show.Paint(t, show.Bad, "nobody"), cmp.Or(lock.Vacancy, "it is free"))
		case l.Foreign:
			t.print("%s\ta client that is not baton\t-\t-\t%s\n", lock.Key, leaseColumn(l.LeaseLeft))
		default:
			t.print("%s\t%s\t%s\t%s\t%s\n", lock.Key, l.NodeID, show.Epoch(l.Epoch),
				text.Duration(t.s.Now.Sub(l.Since)), leaseColumn(l.LeaseLeft))
		}
	}
}

func (t statusTables) nodes() {
	if len(t.s.Nodes) > 0 {
		t.print("\nNODE\tSTATE\tPRIORITY\tSEEN\tVERSION\tCONFIG\tSTATUS PAGE\n")
	}
	drift := false
	for _, n := range t.s.Nodes {
		state, priority, hash := n.Word(), fmt.Sprint(n.Priority), n.ConfigHash
		if n.Observer && !n.Silent() {
			priority = "-"
		}
		if t.s.Drifted(n) {
			hash, drift = hash+" (drift)", true
		}
		t.print("%s\t%s\t%s\t%s\t%s\t%s\t%s\n", n.ID, show.Paint(t, jobcmd.StateColour(state), state), priority,
			seen(n, t.s.NodeID), n.Version, hash, n.Address)
	}
	if drift {
		t.print("\nDrift: nodes with (drift) have other jobs in their configuration than the leader; " +
			"make the files the same, then run baton reload\n")
	}
	for _, n := range t.s.Nodes {
		if n.Aside != "" && !n.Stale {
			t.print("\n%s stands aside %s\n", n.ID, n.Aside)
		}
	}
}

// seen returns when a node last registered. The argument asked is the node that has answered the request, or "" if Redis has answered it.
func seen(n diagnose.Node, asked string) string {
	switch ago := n.LastSeenAgo.Duration(); {
	case n.ID == asked && !n.Stale && n.Twin == "":
		return "now"
	case ago <= diagnose.SeenWithin:
		return "within " + text.Duration(diagnose.SeenWithin)
	default:
		return text.Duration(ago) + " ago"
	}
}

func (t statusTables) jobs() {
	if len(t.s.Jobs) > 0 {
		t.print("\nJOB\tSCHEDULE\tNEXT\tLAST\tROWS\tDEAD\tTOOK\tWAITING\tFAILURES%s\n", t.lockColumn("LOCK"))
	}
	for _, j := range t.s.Jobs {
		next, last, rows, dead, took, waiting := jobcmd.NextRun(j, t.s), "never", "-", "-", "-", show.SafeText(jobcmd.WaitingChanges(j))
		r := j.Ended()
		switch {
		case r != nil:
			last = fmt.Sprintf("%s %s ago", r.State, text.Duration(t.s.Now.Sub(r.Started)))
			rows, dead = fmt.Sprint(r.Rows), fmt.Sprint(r.Dead)
			took = text.Duration(r.Duration.Duration())
		case j.LastRun != nil:
			last = "-"
		}
		if j.DeadLetters != nil {
			dead = fmt.Sprint(*j.DeadLetters) // all letters that wait now; the last run may have made none of them
		}
		if r := j.Running; r != nil {
			next = "running for " + text.Duration(t.s.Now.Sub(r.Started))
		}
		failures := show.SafeText(fmt.Sprint(j.ConsecutiveFailures))
		if j.ConsecutiveFailures > 0 {
			failures = show.Paint(t, show.Bad, string(failures))
		}
		if j.IsDataLate(t.s.Clock()) {
			waiting = show.Paint(t, show.Bad, string(waiting))
		}
		t.print("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s%s\n", j.Name, j.Schedule, show.Paint(t, jobcmd.StateColour(next), next),
			show.Paint(t, jobcmd.StateColour(last), last), rows, dead, took, waiting, failures, t.lockColumn(j.Lock))
	}
	all := slices.IndexFunc(t.s.Jobs, func(j diagnose.Job) bool { return j.Paused != nil && j.Paused.All })
	if all >= 0 {
		t.print("\nAll jobs are paused %s; %s ends the pause\n", pausedFor(t.s.Jobs[all]), t.s.Jobs[all].EndsPause())
	}
	for _, j := range t.s.Jobs {
		if j.Paused != nil && !j.Paused.All {
			t.print("\n%s is paused %s; %s ends the pause\n", j.Name, pausedFor(j), j.EndsPause())
		}
		if r := j.Ended(); r != nil && r.Error != "" {
			t.print("\n%s, at %s on %s: %s\n", j.Name, show.Here(r.Started), r.NodeID, r.Error)
		}
	}
}

// pausedFor returns the reason of a job's pause, and the end of the pause if it has an end.
func pausedFor(j diagnose.Job) string {
	p := j.Paused
	if p.Until.IsZero() {
		return p.Reason
	}
	return fmt.Sprintf("%s, until %s", p.Reason, show.Here(p.Until))
}

// lockColumn returns a table cell for the lock. It returns "" if all jobs run under one lock.
func (t statusTables) lockColumn(text string) show.SafeText {
	if len(t.s.Locks) == 0 {
		return ""
	}
	return show.SafeText("\t" + show.Clean(text))
}

func leaseLeft(left text.Seconds) string {
	if left < 0 {
		return "without an expiry"
	}
	return fmt.Sprintf("lease %s left", text.Duration(left.Duration()))
}

// leaseColumn returns the text of the column LEASE LEFT.
func leaseColumn(left text.Seconds) string {
	if left < 0 {
		return "no expiry"
	}
	return text.Duration(left.Duration())
}
