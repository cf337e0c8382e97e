package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"baton/internal/daemon"
	"baton/internal/text"
)

// hint is something that is not as it should be, and the command to go on with.
type hint struct {
	colour  colour
	what    string
	command string
}

// hintsShown is how many are told: at night one is enough.
const hintsShown = 4

// dataLine says in a line whether data is late.
func (t statusTables) dataLine() {
	state, c := dataState(t.s)
	if state != "" {
		t.print("%s\n", paint(t, c, "Data: "+state))
	}
}

// dataState is how far the flushes are behind. "" if there are none.
func dataState(s daemon.Snapshot) (state string, c colour) {
	var late, unwritten []string
	flushes, known := 0, 0
	var worst time.Duration
	for _, j := range s.Jobs {
		if j.Command {
			continue
		}
		flushes++
		if j.Unwritten() {
			unwritten = append(unwritten, fmt.Sprintf("%s fails (%s changes wait)", j.Name, waitingChanges(j)))
		}
		if j.LagSeconds == nil {
			continue
		}
		known++
		lag := lagOf(j)
		worst = max(worst, lag)
		if isLate(j) {
			late = append(late, fmt.Sprintf("%s is %s behind (%s changes wait)", j.Name, text.Duration(lag.Round(time.Second)), waitingChanges(j)))
		}
	}
	switch {
	case flushes == 0:
		return "", ""
	case len(late) > 0:
		return "LATE: " + text.Names(late, 3), bad
	case len(unwritten) > 0:
		return "NOT WRITTEN: " + text.Names(unwritten, 3), bad
	case known < flushes:
		return fmt.Sprintf("not known of %s", text.Count(flushes-known, "job")), uneasy
	case worst < time.Second:
		return "up to date", good
	}
	return fmt.Sprintf("up to date, at most %s behind", text.Duration(worst.Round(time.Second))), good
}

func lagOf(j daemon.Job) time.Duration {
	if j.LagSeconds == nil {
		return 0
	}
	return time.Duration(*j.LagSeconds * float64(time.Second))
}

// isLate: the flush is further behind than it may be.
func isLate(j daemon.Job) bool {
	return j.LagSeconds != nil && *j.LagSeconds >= cmp.Or(j.LateAfterSeconds, 60)
}

// hints are what is wrong, the worst first.
func hints(s daemon.Snapshot) []hint {
	var all []hint
	add := func(c colour, command, format string, args ...any) {
		all = append(all, hint{c, fmt.Sprintf(format, args...), command})
	}
	switch {
	case s.LastLeader != nil: // the first line tells what is known
	case s.Leader == nil && s.Paused != nil:
		add(uneasy, "baton resume", "no job runs while nobody leads")
	case s.Leader == nil:
		add(bad, "baton explain", "no job runs while nobody leads")
	case s.Leader.Foreign:
		add(bad, "baton status --events", "a client that is not baton holds the lock: no job runs")
	}
	if s.Leader != nil && s.Leader.Ending != "" {
		add(uneasy, "baton job list", "%s gives the lead up, and waits for %s", s.Leader.NodeID, s.Leader.Ending)
	}
	for _, l := range s.Locks {
		if l.Leader != nil && l.Leader.Ending != "" {
			add(uneasy, "baton job list", "%s gives the lead for lock %q up, and waits for %s", l.Leader.NodeID, l.Key, l.Leader.Ending)
		}
		if l.Leader == nil && s.Paused == nil { // a pause is for all locks
			add(bad, "baton explain --lock-key "+l.Key, "nobody leads for lock %q: its jobs do not run", l.Key)
		}
	}
	for _, j := range s.Jobs {
		jobHints(j, s, add)
	}
	for _, l := range s.LeftStages {
		add(uneasy, "baton stage list", "%s of %s, staged by job %s, are flushed by no job", text.Count(int(l.Records), "change"), l.Key, l.Job)
	}
	for _, n := range s.Nodes {
		nodeHints(n, add)
	}
	if s.Leader != nil && !s.Leader.Foreign && len(s.Nodes) > 0 && !slices.ContainsFunc(s.Nodes, func(n daemon.Node) bool {
		return n.ID != s.Leader.NodeID && !n.Silent() && !n.Observer && n.Aside == ""
	}) {
		add(uneasy, "systemctl status baton", "no other node could take over; on the others:")
	}
	slices.SortStableFunc(all, func(a, b hint) int { return cmp.Compare(weight(a), weight(b)) })
	return all
}

// clockOff is from when on a clock is called wrong: slots go by the leader's.
const clockOff = time.Second

func nodeHints(n daemon.Node, add func(c colour, command, format string, args ...any)) {
	offset, how := time.Duration(n.ClockOffsetMS)*time.Millisecond, "ahead of"
	if offset < 0 {
		how = "behind"
	}
	switch {
	case n.Stale || n.State == daemon.StateSilent:
		add(uneasy, "systemctl status baton", "%s was not seen for %s; on that host:", n.ID, text.Duration(time.Duration(n.LastSeenMSAgo)*time.Millisecond))
	case n.State == daemon.StateMissing:
		add(uneasy, "systemctl status baton", "%s led, and has not been heard of since; on that host:", n.ID)
	case n.Twin != "":
		add(bad, "baton doctor", "two processes have the node.id %s: stop one of them", n.ID)
	case offset.Abs() >= clockOff:
		add(uneasy, "baton doctor", "the clock of %s is %s %s that of Redis", n.ID, text.Duration(offset.Abs()), how)
	}
}

func weight(h hint) int {
	if h.colour == bad {
		return 0
	}
	return 1
}

func jobHints(j daemon.Job, s daemon.Snapshot, add func(c colour, command, format string, args ...any)) {
	switch {
	case j.Paused != nil: // is told below, with what ends it
	case j.ConsecutiveFailures > 0 && j.Command && j.LastRun != nil && j.LastRun.Error == "":
		add(bad, "baton job logs "+j.Name, "%s has failed %s", j.Name, times(j.ConsecutiveFailures))
	case j.ConsecutiveFailures > 0:
		add(bad, "baton job history "+j.Name, "%s has failed %s", j.Name, times(j.ConsecutiveFailures))
	case !j.OverdueSince.IsZero() && s.Leader != nil:
		add(bad, "baton job history "+j.Name, "%s is late: due at %s, and no success since", j.Name, slotTime(j.OverdueSince))
	case isLate(j) && s.Leader != nil:
		add(bad, "baton job show "+j.Name, "%s is late", j.Name)
	}
	switch {
	case j.DeadLetters != nil && *j.DeadLetters > 0:
		add(uneasy, "baton dead list --count --job "+j.Name, "%s has %s waiting", j.Name, text.Count(int(*j.DeadLetters), "dead letter"))
	case j.DeadLetters == nil && j.LastRun != nil && j.LastRun.Dead > 0:
		add(uneasy, "baton dead list --job "+j.Name, "%s put %s aside in its last run", j.Name, text.Count(int(j.LastRun.Dead), "record"))
	}
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times in a row", n)
}

// hints tells what is wrong and what to do.
func (t statusTables) hints() {
	all := hints(t.s)
	for i, h := range all {
		if i == hintsShown {
			t.print("%s\n", paint(t, dim, fmt.Sprintf("  and %d more", len(all)-i)))
			break
		}
		t.print("%s %s  → %s\n", paint(t, h.colour, "!"), paint(t, h.colour, h.what), paint(t, strong, h.command))
	}
}
