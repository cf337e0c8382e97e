package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"baton/internal/diagnose"
	"baton/internal/text"
)

// problem is an entry of the page's list of problems. It describes a fault and how to correct the fault.
type problem struct {
	Tone      tone
	What      string // such as "Jobs: 1 of 7 failing"
	Note      string // details, such as the names of those jobs
	Next      string // the advice
	Command   string // the command for the advice; "" if there is none
	Link, See string // a link, and the text of the link
	Say       string // read out by screen readers when the problem appears; contains no numbers
}

// problems returns the problems that the page lists, the worst problem first. Problems of the leader are not included, because another part
// of the page shows them. If the state could not be read, problems returns only that problem.
func (v overview) problems(s diagnose.Snapshot, letters letterCount) (all []problem) {
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
		return all // the other problems are based on old data, and may be consequences of the first
	}
	if troubles := nodeTroubles(wrong); len(troubles) > 0 {
		for _, t := range troubles[1:] { // the verdict already shows the first one
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
				Note:    "these rows were there before, and the job never wrote them",
				Next:    "See the plan of a pass, then accept the rows on the job’s page, or with baton job accept " + p.Job + ":",
				Command: p.Command,
			})
		}
		if p.Code == diagnose.CodeLeftStage {
			all = append(all, problem{
				Tone: toneOf(p), What: text.Count(p.Count, "change") + " of " + p.Key + inStore(p.Store) + " no job flushes",
				Note: "staged by " + p.Job + ", which is gone or has another key",
				Next: "Give a job this key again until the job has run, or drop the changes:", Command: p.Command,
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

// storeProblem returns the problem of a store that does not answer. In this case only the jobs that read this store fail.
func storeProblem(s diagnose.Snapshot, p diagnose.Problem) problem {
	at := slices.IndexFunc(s.Stores, func(store diagnose.Store) bool { return store.Name == p.Store })
	store := s.Stores[at]
	return problem{
		Tone: toneOf(p), What: "Store " + p.Store + " does not answer", Note: clip(visible(store.Error)),
		Next: "Only the jobs of this store fail. See whether Redis runs at " + cmp.Or(store.Host, "its address") +
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

// lockProblems returns the problems of the separate locks of some jobs. If no node leads under the node's own lock either, it omits locks
// without a leader. The page already shows that problem in the part about the leader.
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
			p.Next = "Find out which program it is by the lock’s value, and stop it: owner " + clip(l.Leader.Owner)
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

// trouble is a problem of one or more nodes, with advice on how to correct it.
type trouble struct {
	tone                tone
	note, next, command string
}

// nodeTroubles returns the problems of nodes that lead or could lead, the worst problem first.
func nodeTroubles(wrong []diagnose.Problem) (all []trouble) {
	for _, kind := range []struct {
		codes               []diagnose.Code
		note, next, command string
	}{
		{[]diagnose.Code{diagnose.CodeSilent}, "%s not seen lately",
			"A node that is gone for good leaves this list within a day. On NODE:", "systemctl status baton"},
		{[]diagnose.Code{diagnose.CodeTwin}, "two processes use the id %s",
			"They have the same node.id, and cannot be told apart: stop one of them.", ""},
		{[]diagnose.Code{diagnose.CodeNodesCut}, "the list is too long: %s entries were read",
			"There may be nodes that are not shown. Find out how to shorten the list:", "baton doctor"},
		{[]diagnose.Code{diagnose.CodeDrift}, "other configuration on %s",
			"Give that node the leader’s configuration, then run there:", "baton reload"},
		{[]diagnose.Code{diagnose.CodeClock}, "the clock is wrong on %s",
			"Slots start by the leader’s clock, or by the clock of Redis while the leader’s is more than 5 s off: " +
				"check the node’s time service, for example with",
			"chronyc tracking"},
	} {
		var names []string
		t := trouble{}
		for _, p := range wrong {
			if !slices.Contains(kind.codes, p.Code) {
				continue
			}
			if p.Code == diagnose.CodeNodesCut {
				p.Node = text.Number(p.Count)
			}
			if p.Node != "" {
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
