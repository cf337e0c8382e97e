package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"baton/internal/diagnose"
	"baton/internal/text"
)

// problem is something to do, in plain words.
type problem struct {
	Tone      tone
	What      string // "Jobs: 1 of 7 failing"
	Note      string // of which
	Next      string // what to do
	Link, See string // where, and what that is called
	Say       string // read out when it comes up; without figures
}

// problems are what there is to do, the worst first: nothing where all is well. What is
// wrong with the leader stands in its own part of the page. Where the state cannot be read
// that is the problem.
func (v overview) problems(s diagnose.Snapshot, letters tally) (all []problem) {
	if s.Error == "" {
		for _, l := range s.Locks {
			if p, is := lockProblem(l, s); is {
				all = append(all, p)
			}
		}
	}
	for _, v := range v.Verdicts {
		if v.Next == "" || s.Error != "" && v.Question != redisQuestion {
			continue
		}
		p := problem{Tone: v.Tone, What: v.Question + ": " + v.Answer, Note: cmp.Or(v.Detail, v.Note), Next: v.Next, Link: v.Link, Say: v.Say}
		if v.Question == nodesQuestion {
			p.What, p.Note = v.Question+": "+v.Note, "" // how many live is no problem
		}
		if v.Link != "" {
			p.See = "Open " + v.Of
		}
		all = append(all, p)
	}
	if s.Error != "" {
		return all // all else is how it was, and may have come of that
	}
	if troubles := nodeTroubles(s); len(troubles) > 0 {
		for _, t := range troubles[1:] { // the verdict has the first
			all = append(all, problem{Tone: warn, What: nodesQuestion + ": " + t.note, Next: t.next})
		}
	}
	for _, l := range s.LeftStages {
		all = append(all, problem{Tone: warn, What: text.Count(l.Records, "change") + " of " + l.Key + " no job flushes", Note: "staged by " + l.Job + ", which is gone or has another key",
			Next: "Give a job this key again until it has run, or drop them: baton stage list."})
	}
	if letters.text != "" {
		all = append(all, problem{Tone: warn, What: letters.text, Note: "records that did not fit their table; nothing is lost", Next: "Fix the table or the job, then replay them.", Link: "/dead-letters", See: "See why"})
	}
	if letters.unknown {
		p := problem{Tone: warn, What: "Dead letters could not be counted", Note: "a database does not answer", Link: "/dead-letters", See: "See which"}
		if letters.text != "" {
			p.What = "There may be more dead letters"
		}
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b problem) int { return cmp.Compare(severity(b.Tone), severity(a.Tone)) })
	return all
}

// lockProblem is what is wrong with a lock that some of the jobs have of their own. While
// nobody leads at all, that is what there is to see to.
func lockProblem(l diagnose.Lock, s diagnose.Snapshot) (problem, bool) {
	p := problem{Tone: bad, Note: cmp.Or(sentence(l.Vacancy), "The lock is free."), Say: "Nobody leads under a lock"}
	switch {
	case l.Leader != nil && l.Leader.Foreign:
		p.What, p.Note = "Another program holds the lock "+l.Key, "Its jobs do not run."
		p.Next = "Find out which program it is by its value, and stop it: owner " + clip(l.Leader.Owner)
	case l.Leader != nil || s.Leader == nil:
		return p, false
	default:
		p.What, p.Next = "Nobody leads under the lock "+l.Key, "Its jobs do not run. Wait some seconds; if it stays so, see the log of baton on each node."
	}
	return p, true
}

// trouble is something amiss with nodes, and what to do about it.
type trouble struct{ note, next string }

// nodeTroubles are what is amiss with nodes that lead or could, the worst first.
func nodeTroubles(s diagnose.Snapshot) (all []trouble) {
	nodes := map[diagnose.Code][]string{}
	for _, p := range diagnose.Problems(s) {
		if p.Node != "" {
			nodes[p.Code] = append(nodes[p.Code], p.Node)
		}
	}
	add := func(names []string, note, next string) {
		if len(names) > 0 {
			all = append(all, trouble{fmt.Sprintf(note, text.Names(names, namesShown)), strings.ReplaceAll(next, "NODE", names[0])})
		}
	}
	silent := slices.Concat(nodes[diagnose.CodeMissing], nodes[diagnose.CodeSilent])
	add(silent, "%s not seen lately", "On NODE: systemctl status baton. A node that is gone for good leaves this list within a day.")
	add(nodes[diagnose.CodeTwin], "two processes use the id %s", "They have the same node.id, and cannot be told apart: stop one of them.")
	add(nodes[diagnose.CodeDrift], "other configuration on %s", "Give it the leader’s configuration, then run there: baton reload.")
	add(nodes[diagnose.CodeClock], "the clock is wrong on %s", "Slots start by the leader’s clock: check its time service, for example with chronyc tracking.")
	return all
}
