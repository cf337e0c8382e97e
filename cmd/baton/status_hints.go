package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"baton/cmd/baton/internal/jobcmd"
	"baton/cmd/baton/internal/show"
	"baton/internal/diagnose"
	"baton/internal/text"
)

// hint is a problem, with the command to run next.
type hint struct {
	colour  show.Colour
	what    string
	command string
}

// hintsShown is the maximum number of hints that are listed.
const hintsShown = 4

// dataLine prints a line that says whether data is late.
func (t statusTables) dataLine() {
	state, c := dataState(t.s)
	if state != "" {
		t.print("%s\n", show.Paint(t, c, "Data: "+state))
	}
}

// dataState returns a text that says how far the data in the databases lags behind the data in Redis. It returns "" if there are no
// flushes.
func dataState(s diagnose.Snapshot) (state string, c show.Colour) {
	d := diagnose.DataOf(s)
	about := func(jobs []diagnose.Job, say func(diagnose.Job) string) string {
		lines := make([]string, len(jobs))
		for i, j := range jobs {
			lines[i] = fmt.Sprintf("%s %s (%s)", j.Name, say(j), waits(j))
		}
		return text.Names(lines, 3)
	}
	switch d.State {
	case diagnose.DataNoneHere:
		return "", ""
	case diagnose.DataLate:
		return "LATE: " + about(d.Late, func(j diagnose.Job) string {
			lag, _ := j.Lag()
			return "is " + text.Duration(lag.Round(time.Second)) + " behind"
		}), show.Bad
	case diagnose.DataStuck:
		return "NOT WRITTEN: " + about(d.Unwritten, func(diagnose.Job) string { return "fails" }), show.Bad
	case diagnose.DataUnknown:
		return "not known of " + text.Count(len(d.Unmeasured), "job") + whyUncounted(d.Unmeasured), show.Uneasy
	}
	if d.Lag < time.Second {
		return "up to date", show.Good
	}
	return "up to date, at most " + text.Duration(d.Lag.Round(time.Second)) + " behind", show.Good
}

// longestWhy is the maximum length, in bytes, of the shown reason why a backlog is unknown.
const longestWhy = 160

// waits returns a text with the number of changes that wait for a job, or with the reason why that number is unknown.
func waits(j diagnose.Job) string {
	if j.Backlog == nil && j.BacklogUnknown != "" {
		return "backlog unknown: " + text.Clip(text.OneLine(j.BacklogUnknown), longestWhy)
	}
	return jobcmd.WaitingChanges(j) + " changes wait"
}

// whyUncounted returns the reasons why the backlogs of jobs are unknown. It returns "" if no job has such a reason.
func whyUncounted(jobs []diagnose.Job) string {
	var lines []string
	for _, j := range jobs {
		if j.BacklogUnknown != "" {
			lines = append(lines, fmt.Sprintf("%s (%s)", j.Name, waits(j)))
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return ": " + text.Names(lines, 3)
}

// hints returns the problems of the state, the worst problem first.
func hints(s diagnose.Snapshot) []hint {
	problems := diagnose.Problems(s)
	all := make([]hint, len(problems))
	for i, p := range problems {
		all[i] = hint{show.Uneasy, problemWords(p, s), p.Command}
		if p.Grave {
			all[i].colour = show.Bad
		}
	}
	return all
}

// problemWords describes a problem.
func problemWords(p diagnose.Problem, s diagnose.Snapshot) string {
	under := ""
	if p.Lock != "" {
		under = fmt.Sprintf(" for lock %q", p.Lock)
	}
	switch p.Code {
	case diagnose.CodeRedis:
		return "redis unavailable: " + s.Redis.Error
	case diagnose.CodeStore:
		return storeWords(p, s)
	case diagnose.CodePaused:
		return "no job runs while the election is paused"
	case diagnose.CodeNoLeader:
		return "no node leads" + under + ": its jobs do not run"
	case diagnose.CodeForeign:
		return cmp.Or(strings.TrimPrefix(under, " for "), "the lock") + " is held by a client that is not baton: its jobs do not run"
	case diagnose.CodeEnding:
		if endingOf(p, s) == "" {
			return fmt.Sprintf("%s has handed over the lead%s: another node takes it within seconds", p.Node, under)
		}
		return fmt.Sprintf("%s hands over the lead%s, and waits for %s", p.Node, under, endingOf(p, s))
	case diagnose.CodeNoStandby:
		return "no other node could take over; on the other hosts:"
	case diagnose.CodeNodesCut:
		return fmt.Sprintf("the list of nodes is too long: %s entries were read, and %s shown; there may be more nodes",
			text.Number(p.Count), text.Number(len(s.Nodes)))
	case diagnose.CodeLeftStage:
		return fmt.Sprintf("%s of %s, staged by job %s, are flushed by no job", text.Count(p.Count, "change"), stageName(p), p.Job)
	case diagnose.CodeNoJobs:
		return "no node leads: none has a job in its configuration"
	case diagnose.CodeFailing, diagnose.CodeLate, diagnose.CodeUnscheduled, diagnose.CodeDeadLetters, diagnose.CodeUnaccepted:
		return jobWords(p, s)
	}
	return nodeWords(p, s)
}

// storeWords returns a text that says which store is unreachable, and which jobs cannot run because of that.
func storeWords(p diagnose.Problem, s diagnose.Snapshot) string {
	var jobs []string
	for _, j := range s.Jobs {
		if j.Store == p.Store {
			jobs = append(jobs, j.Name)
		}
	}
	at := slices.IndexFunc(s.Stores, func(store diagnose.Store) bool { return store.Name == p.Store })
	return fmt.Sprintf("store %s is unavailable, so these jobs fail: %s: %s", p.Store, text.Names(jobs, 3), s.Stores[at].Error)
}

func stageName(p diagnose.Problem) string {
	if p.Store == "" {
		return p.Key
	}
	return p.Key + " in store " + p.Store
}

// endingOf returns the reason why a leader that hands over the lead still waits.
func endingOf(p diagnose.Problem, s diagnose.Snapshot) string {
	for _, l := range s.Locks {
		if l.Key == p.Lock && l.Leader != nil {
			return l.Leader.Ending
		}
	}
	if p.Lock != "" || s.Leader == nil {
		return ""
	}
	return s.Leader.Ending
}

func jobWords(p diagnose.Problem, s diagnose.Snapshot) string {
	paused := ""
	if slices.ContainsFunc(s.Jobs, func(j diagnose.Job) bool { return j.Name == p.Job && j.Paused != nil }) {
		paused = ", and is paused"
	}
	lacking := diagnose.Unscheduled{Leader: p.Node}.Words() + " (its configuration has no such job)"
	late := map[diagnose.Late]string{
		diagnose.LateNoSuccess: "is late: due at " + show.SlotTime(p.Since) + ", and has not succeeded since",
		diagnose.LateLag:       "is late: behind since " + show.SlotTime(p.Since),

		diagnose.LateUnscheduled: "is late: " + lacking,
	}[p.Late]
	switch {
	case p.Code == diagnose.CodeDeadLetters && p.Count == 0:
		return p.Job + " wrote dead letters in its last run"
	case p.Code == diagnose.CodeDeadLetters:
		return fmt.Sprintf("%s has %s waiting", p.Job, text.Count(p.Count, "dead letter"))
	case p.Code == diagnose.CodeUnscheduled:
		return p.Job + " is " + lacking
	case p.Code == diagnose.CodeUnaccepted:
		return fmt.Sprintf("%s did not change %s that it never wrote; see the plan, then run baton job accept %s",
			p.Job, text.Count(p.Count, "row"), p.Job)
	case p.Code == diagnose.CodeLate:
		return p.Job + " " + late + paused
	case late != "":
		return fmt.Sprintf("%s has failed %s, and %s%s", p.Job, times(int(p.Count)), late, paused)
	}
	return fmt.Sprintf("%s has failed %s%s", p.Job, times(int(p.Count)), paused)
}

func nodeWords(p diagnose.Problem, s diagnose.Snapshot) string {
	at := slices.IndexFunc(s.Nodes, func(n diagnose.Node) bool { return n.ID == p.Node })
	if at < 0 {
		return string(p.Code)
	}
	n := s.Nodes[at]
	switch p.Code {
	case diagnose.CodeSilent:
		if n.Led {
			return n.ID + " is silent: it led, and has not been seen since; on that host:"
		}
		return fmt.Sprintf("%s is silent: not seen for %s; on that host:", n.ID, text.Duration(n.LastSeenAgo.Duration()))
	case diagnose.CodeTwin:
		return "two processes have the node.id " + n.ID + ": stop one of them"
	case diagnose.CodeDrift:
		return n.ID + " has another configuration than the leader; once its file is the same, on that host:"
	case diagnose.CodeClock:
		how := "ahead of"
		if n.ClockOffset() < 0 {
			how = "behind"
		}
		words := fmt.Sprintf("the clock of %s is %s %s that of Redis", n.ID, text.Duration(n.ClockOffset().Abs()), how)
		if n.SlotsByRedis() {
			words += ": its slots follow the clock of Redis"
		}
		return words
	}
	return string(p.Code)
}

func times(n int) string {
	switch n {
	case 0, 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times in a row", n)
}

// hints prints the problems and their remedies.
func (t statusTables) hints() {
	all := hints(t.s)
	for i, h := range all {
		if i == hintsShown {
			t.print("%s\n", show.Paint(t, show.Dim, fmt.Sprintf("  and %d more", len(all)-i)))
			break
		}
		t.print("%s %s  → %s\n", show.Paint(t, h.colour, "!"), show.Paint(t, h.colour, h.what), show.Paint(t, show.Strong, h.command))
	}
}
