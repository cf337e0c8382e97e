package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"baton/internal/diagnose"
	"baton/internal/text"
)

// problem is a fault and its remedy, in plain words.
type problem struct {
	Tone      tone
	What      string // "Jobs: 1 of 7 failing"
	Note      string // details, such as the names of those jobs
	Next      string // the advice
	Command   string // the command for it; "" without
	Link, See string // a link and its text
	Say       string // read out by screen readers when it appears; without figures
}

// problems returns the problems of the page, the worst first. Those of the leader have their own
// part of the page. If the state could not be read, that is the only problem.
func (v overview) problems(s diagnose.Snapshot, letters tally) (all []problem) {
	wrong := diagnose.Problems(s)
	if s.Error == "" {
		all = append(all, lockProblems(s, wrong)...)
	}
	for _, v := range v.Verdicts {
		if v.Next == "" || s.Error != "" && v.Question != redisQuestion {
			continue
		}
		p := problem{Tone: v.Tone, What: v.Question + ": " + v.Answer, Note: cmp.Or(v.Detail, v.Note), Next: v.Next,
			Command: v.Command, Link: v.Link, Say: v.Say}
		if v.Question == nodesQuestion {
			p.What, p.Note = v.Question+": "+v.Note, "" // the number of live nodes is no problem
		}
		if v.Link != "" {
			p.See = "Open " + v.Of
		}
		all = append(all, p)
	}
	if s.Error != "" {
		return all // the rest is old, and may be a consequence
	}
	if troubles := nodeTroubles(wrong); len(troubles) > 0 {
		for _, t := range troubles[1:] { // the verdict shows the first
			all = append(all, problem{Tone: t.tone, What: nodesQuestion + ": " + t.note, Next: t.next, Command: t.command})
		}
	}
	for _, p := range wrong {
		if p.Code == diagnose.CodeStore {
			all = append(all, storeProblem(s, p))
		}
		if p.Code == diagnose.CodeUnaccepted {
			all = append(all, problem{
				Tone: toneOf(p), What: p.Job + " has left " + text.Count(p.Count, "row") + " of its table alone",
				Note: "they were there before, and the job never wrote them",
				Next: "See the plan of a pass, then accept it with baton job accept " + p.Job + ":", Command: p.Command,
			})
		}
		if p.Code == diagnose.CodeLeftStage {
			all = append(all, problem{
				Tone: toneOf(p), What: text.Count(p.Count, "change") + " of " + p.Key + inStore(p.Store) + " no job flushes",
				Note: "staged by " + p.Job + ", which is gone or has another key",
				Next: "Give a job this key again until it has run, or drop them:", Command: p.Command,
			})
		}
	}
	if letters.text != "" {
		all = append(all, problem{Tone: warn, What: letters.text,
			Note: "records that did not fit their table; nothing is lost",
			Next: "Fix the table or the job, then replay them.", Link: "/dead-letters", See: "See why"})
	}
	if letters.unknown {
		p := problem{Tone: warn, What: "Dead letters could not be counted", Note: "a database does not answer",
			Link: "/dead-letters", See: "See which"}
		if letters.text != "" {
			p.What = "There may be more dead letters"
		}
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b problem) int { return cmp.Compare(severity(b.Tone), severity(a.Tone)) })
	return all
}

// storeProblem reports a store that does not answer. Only its own jobs fail.
func storeProblem(s diagnose.Snapshot, p diagnose.Problem) problem {
	at := slices.IndexFunc(s.Stores, func(store diagnose.Store) bool { return store.Name == p.Store })
	store := s.Stores[at]
	return problem{
		Tone: toneOf(p), What: "Store " + p.Store + " does not answer", Note: clip(visible(store.Error)),
		Next: "Its jobs fail until it does, and no others. See whether Redis runs at " + cmp.Or(store.Host, "its address") +
			", and ask on this node:",
		Command: p.Command, Say: "A store does not answer",
	}
}

func inStore(store string) string {
	if store == "" {
		return ""
	}
	return " in store " + store
}

// toneOf returns the tone of a problem.
func toneOf(p diagnose.Problem) tone {
	if p.Grave {
		return bad
	}
	return warn
}

// lockProblems returns the problems of the separate locks of some jobs. While no node leads under this
// node's own lock either, it omits free locks: the page shows that problem in the leader's part.
func lockProblems(s diagnose.Snapshot, wrong []diagnose.Problem) (all []problem) {
	for _, w := range wrong {
		at := slices.IndexFunc(s.Locks, func(l diagnose.Lock) bool { return l.Key == w.Lock })
		if at < 0 {
			continue
		}
		l, p := s.Locks[at], problem{Tone: toneOf(w), Say: "No node leads under a lock"}
		switch {
		case w.Code == diagnose.CodeForeign:
			p.What, p.Note = "Another program holds the lock "+l.Key, "Its jobs do not run."
			p.Next = "Find out which program it is by its value, and stop it: owner " + clip(l.Leader.Owner)
		case w.Code == diagnose.CodeNoLeader && s.Leader != nil:
			p.What, p.Note = "No node leads under the lock "+l.Key, cmp.Or(sentence(l.Vacancy), "The lock is free.")
			p.Next, p.Command = "Its jobs do not run. Wait some seconds; if it stays so:", w.Command
		default:
			continue
		}
		all = append(all, p)
	}
	return all
}

// trouble is a fault of nodes and its remedy.
type trouble struct {
	tone                tone
	note, next, command string
}

// nodeTroubles returns the faults of nodes that lead or could lead, the worst first.
func nodeTroubles(wrong []diagnose.Problem) (all []trouble) {
	for _, kind := range []struct {
		codes               []diagnose.Code
		note, next, command string
	}{
		{[]diagnose.Code{diagnose.CodeSilent}, "%s not seen lately",
			"A node that is gone for good leaves this list within a day. On NODE:", "systemctl status baton"},
		{[]diagnose.Code{diagnose.CodeTwin}, "two processes use the id %s",
			"They have the same node.id, and cannot be told apart: stop one of them.", ""},
		{[]diagnose.Code{diagnose.CodeDrift}, "other configuration on %s",
			"Give it the leader’s configuration, then run there:", "baton reload"},
		{[]diagnose.Code{diagnose.CodeClock}, "the clock is wrong on %s",
			"Slots start by the leader’s clock, and by that of Redis while it is more than 5 s off: " +
				"check its time service, for example with",
			"chronyc tracking"},
	} {
		var names []string
		t := trouble{}
		for _, p := range wrong {
			if p.Node != "" && slices.Contains(kind.codes, p.Code) {
				names, t.tone = append(names, p.Node), worseOf(t.tone, toneOf(p))
			}
		}
		if len(names) > 0 {
			t.note, t.next = fmt.Sprintf(kind.note, text.Names(names, namesShown)), strings.ReplaceAll(kind.next, "NODE", names[0])
			t.command = kind.command
			all = append(all, t)
		}
	}
	slices.SortStableFunc(all, func(a, b trouble) int { return cmp.Compare(severity(b.tone), severity(a.tone)) })
	return all
}
