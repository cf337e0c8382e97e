package model

import (
	"fmt"
	"strings"
)

// These are the actions. For each kind of request to Redis there are three: sends0 + kind, unanswered0 + kind and delayed0 + kind.
const (
	changesKey uint8 = iota + 1
	completes
	elects
	crashes
	failsRun
	claims
	stepsDown
	begins
	peeks
	readsEarly
	readsPage
	readsMark
	readsAhead
	readsPosition
	looks
	findsGap
	leavesThere
	opens
	skips
	checks
	commitsPage
	commitsUnheard
	commitsLate
	rollsBack
	notes
	orphanCommits
	orphanEnds
	executesLate
	saves
	fallsBack
	prunes
	resizes

	sends0      uint8 = 100
	unanswered0 uint8 = 110
	delayed0    uint8 = 120
)

// String names the type of a source.
func (s SourceType) String() string {
	return [...]string{"counters", "counters with a key each", "hashes", "a stream", "totals"}[s]
}

// Story tells the counterexample of an exploration, one step a line.
func (p FlushProtocol) Story(e *Exploration[Flush]) string {
	var b strings.Builder
	for i, turn := range e.Path {
		fmt.Fprintf(&b, "%2d. %s\n", i+1, p.sentence(turn))
	}
	return b.String() + "    " + e.Broken + "\n"
}

func (p FlushProtocol) sentence(t Turn[Flush]) string {
	act, from, to := t.Step.Act, t.From, t.Step.To
	if t.Step.Node >= 0 {
		return string(rune('A'+t.Names[t.Step.Node])) + " " + p.deed(t) + "."
	}
	k := keyName(t.Step.Detail)
	switch act {
	case changesKey:
		return p.change(from, to, t.Step.Detail) + "."
	case completes:
		if p.off(MarkLast) {
			return fmt.Sprintf("The application changes %s, change %d.", k, to.written)
		}
		return "The application marks " + k + " as changed."
	case orphanCommits:
		return "The database executes the COMMIT that was on its way: " + p.content(from, from.orphan) + "."
	case orphanEnds:
		return "The database rolls back the transaction whose client has gone."
	case executesLate:
		m := from.net[t.Step.Detail]
		return "Redis executes the late request to " + p.request(m.kind, m.key) + ": " + p.effect(m.kind, from, to) + "."
	case saves:
		return "A snapshot, or a replica, gets the data of Redis."
	case fallsBack:
		return "Redis continues with the data of the snapshot or the replica."
	case prunes:
		return "A week passes, and the ledger is pruned."
	}
	return "The configuration allows two keys in a part."
}

func (p FlushProtocol) change(from, to Flush, detail uint8) string {
	switch {
	case p.Source == Stream:
		return fmt.Sprintf("The application adds entry %d", detail)
	case p.Source != Hashes:
		return fmt.Sprintf("The application adds 1 to %s (change %d)", keyName(detail), to.written)
	case from.redis.value == to.redis.value:
		return "The application marks " + keyName(detail) + " as changed, before the change"
	}
	return fmt.Sprintf("The application changes %s, change %d", keyName(detail), to.written)
}

// deed tells what a leader does.
func (p FlushProtocol) deed(t Turn[Flush]) string {
	from, to, act, i := t.From, t.Step.To, t.Step.Act, t.Step.Node
	was, is := from.node[i], to.node[i]
	page := p.content(from, was.page)
	if !p.inside() && act >= commitsPage {
		page += " (the record of it comes later)"
	}
	switch act {
	case elects:
		return fmt.Sprintf("is elected, with epoch %d", is.epoch)
	case crashes:
		return "crashes"
	case failsRun:
		return "ends its run with an error"
	case claims:
		return "takes the fence in the database"
	case stepsDown:
		return "finds a newer epoch in the fence, and steps down"
	case begins:
		return "begins a run"
	case peeks:
		return "reads the hashes, before it stages the index"
	case readsEarly:
		return "begins to read the stage before it is sealed"
	case readsPage:
		return "reads " + p.content(from, is.page)
	case readsMark:
		return "reads the mark: " + p.content(from, is.page)
	case readsAhead:
		return "reads the same total again: " + p.content(from, is.ahead)
	case readsPosition:
		return fmt.Sprintf("begins a run of job %d, from position %d", t.Step.Detail+1, is.from.id)
	case looks:
		return "looks at the stream, and finds no gap"
	case findsGap:
		return "looks at the stream, and raises the alarm: entries may be missing"
	case leavesThere:
		return "leaves the id in the stage until the stage is discarded"
	case opens:
		return "writes " + page + ", and does not commit yet"
	case skips:
		return "finds that " + page + " is in the database, and skips it"
	case checks:
		return fmt.Sprintf("checks the fence (epoch %d)", from.tables.fence)
	case commitsPage:
		return "commits " + page
	case commitsUnheard:
		return "commits " + page + ", and the answer is lost"
	case commitsLate:
		return "sends COMMIT for " + page + ", which is still on its way, and loses its connection"
	case rollsBack:
		return "loses its connection, and the database rolls back"
	case notes:
		return "commits a second transaction, with the record of what it has written"
	}
	kind, how := act%10, ""
	switch act - kind {
	case unanswered0:
		how = ". The answer is lost"
	case delayed0:
		return "asks Redis to " + p.request(kind, t.Step.Detail) + ". The request is on its way, and the run fails"
	}
	return "asks Redis to " + p.request(kind, t.Step.Detail) + ": " + p.effect(kind, from, to) + how
}

func (p FlushProtocol) request(kind, key uint8) string {
	switch kind {
	case toStage:
		return "stage"
	case toGather:
		return "gather " + keyName(key)
	case toSeal:
		return "seal the stage"
	case toRemove:
		return "remove " + keyName(key) + " from the stage"
	case toTrim:
		return "trim the stream"
	}
	return "discard the stage"
}

// effect tells how a request has changed Redis.
func (p FlushProtocol) effect(kind uint8, from, to Flush) string {
	was, is := from.redis, to.redis
	var text []string
	switch {
	case was.id == 0 && is.id != 0:
		text = append(text, "there is a new stage")
	case was.id != 0 && is.id == 0:
		text = append(text, "the stage is gone")
	case was.id != is.id:
		text = append(text, "the stage has a new id")
	}
	if was.sealed != is.sealed && is.sealed && p.Source == PlainCounters {
		text = append(text, "it is sealed")
	}
	if was.stage != is.stage && is.stage != 0 {
		text = append(text, "it has "+p.list(to, is.stage))
	}
	switch {
	case is.waits&^was.waits != 0:
		text = append(text, "it waits for "+keyNames(is.waits))
	case is.waits != was.waits && p.Source == Hashes && is.id != 0:
		text = append(text, keyNames(was.waits&^is.waits)+" leaves it")
	}
	if was.live != is.live && p.Source == Stream {
		text = append(text, "it trims "+p.list(from, was.live&^is.live))
	}
	if was.noted != is.noted {
		text = append(text, "the position is recorded")
	}
	switch {
	case text != nil:
	case kind == toStage && is.id != 0:
		return "it finds the stage"
	default:
		return "nothing changes"
	}
	return strings.Join(text, ", ")
}

// content names what a page contains.
func (p FlushProtocol) content(s Flush, t transaction) string {
	switch {
	case t.state == 0 && p.Source == Totals:
		return "nothing to add"
	case t.state == 0:
		return "an empty part"
	case p.Source == Hashes && t.value == 0:
		return keyName(t.key) + ", which is missing"
	case p.Source == Hashes:
		return fmt.Sprintf("%s with change %d", keyName(t.key), t.value)
	case p.Source == Totals && t.grown == 0:
		return fmt.Sprintf("the total %d of %s", t.value, keyName(t.key))
	case p.Source == Totals:
		return fmt.Sprintf("the growth %d of %s up to %d", t.grown, keyName(t.key), t.value)
	case p.Source == Stream:
		return fmt.Sprintf("%s for job %d", p.list(s, t.has), t.job+1)
	}
	return fmt.Sprintf("part %d with %s", t.part, p.list(s, t.has))
}

// list names changes, or entries.
func (p FlushProtocol) list(s Flush, some changes) string {
	var text []string
	for c := range s.written {
		if some>>c&1 == 0 {
			continue
		}
		if p.Source == Stream {
			text = append(text, fmt.Sprintf("entry %d", s.id[c]))
		} else {
			text = append(text, fmt.Sprintf("change %d of %s", c+1, keyName(s.key[c])))
		}
	}
	return strings.Join(text, " and ")
}

func keyName(k uint8) string { return string(rune('x' + k)) }

func keyNames(ks keySet) string {
	if ks == 3 {
		return "x and y"
	}
	return keyName(uint8(ks) - 1)
}
