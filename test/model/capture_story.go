package model

import (
	"fmt"
	"strings"
)

// These are the actions of the capture. Those that the flush has, too, are with the flush.
const (
	setsKey uint8 = iota + 50
	deletesKey
	emptiesRedis
	promotes
	forgets
	joins
	receives
	dropped
	takesKeys
	readsKey
	findsNoKey
	readsNothing
	beginsSweep
	asksOffset
	searches
	receivesAll
	pays
)

// Story tells the counterexample of an exploration, one step a line.
func (p CaptureProtocol) Story(e *Exploration[Capture]) string {
	var b strings.Builder
	for i, turn := range e.Path {
		fmt.Fprintf(&b, "%2d. %s\n", i+1, p.sentence(turn))
	}
	return b.String() + "    " + e.Broken + "\n"
}

func (p CaptureProtocol) sentence(t Turn[Capture]) string {
	from, to := t.From, t.Step.To
	if t.Step.Node >= 0 {
		return string(rune('A'+t.Names[t.Step.Node])) + " " + p.deed(t) + "."
	}
	k := keyName(t.Step.Detail)
	switch t.Step.Act {
	case setsKey:
		return fmt.Sprintf("The application sets %s = %d (offset %d).", k, to.redis.value[t.Step.Detail], to.redis.at.offset)
	case deletesKey:
		return fmt.Sprintf("The application deletes %s (offset %d).", k, to.redis.at.offset)
	case emptiesRedis:
		return fmt.Sprintf("FLUSHALL is called (offset %d).", to.redis.at.offset)
	case saves:
		return fmt.Sprintf("The replica, or a snapshot, gets the data up to offset %d.", to.saved.at.offset)
	case promotes:
		return fmt.Sprintf("The replica is promoted: history %d is the same up to offset %d.", to.redis.at.id, to.redis.at.offset)
	case forgets:
		return fmt.Sprintf("The master restarts with the snapshot: history %d begins.", to.redis.at.id)
	case orphanCommits:
		return "The database executes the COMMIT that was on its way: " + pageText(from.orphan) + "."
	}
	return "The database rolls back the transaction whose client has gone."
}

// deed tells what a leader does.
func (p CaptureProtocol) deed(t Turn[Capture]) string {
	from, to := t.From, t.Step.To
	was, is := from.node[t.Step.Node], to.node[t.Step.Node]
	k := keyName(t.Step.Detail)
	switch t.Step.Act {
	case elects:
		return fmt.Sprintf("is elected, with epoch %d", is.epoch)
	case crashes:
		return "ends its term, or crashes"
	case failsRun:
		return "ends its run with an error"
	case claims:
		return "takes the fence in the database"
	case stepsDown:
		return "finds a newer leader in the database, and stops"
	case begins:
		return "begins a run, and reads the place: " + placeText(from.place)
	case joins:
		return joinText(was.feed, is)
	case receives:
		if t.Step.Detail == flushAll {
			return "receives FLUSHALL"
		}
		return "receives the change of " + keyName(t.Step.Detail-changeOf)
	case dropped:
		return "is too slow, and the master closes the stream"
	case takesKeys:
		if is.batch.pass {
			return "begins a pass over all keys"
		}
		return "takes the pending keys: " + pendingKeys(is.batch.keys)
	case readsKey:
		return "reads " + k + ": " + valueOf(is.page)
	case findsNoKey:
		return "does not find " + k + " in the pass"
	case readsNothing:
		return "has a page without a row"
	case beginsSweep:
		return "has read all keys, and lists the table"
	case asksOffset:
		return fmt.Sprintf("asks for the end of the history; seen is %d", is.feed.seen)
	case searches:
		if is.page.has {
			return "searches for the key of row " + k + ": it is missing"
		}
		return "searches for the key of row " + k + ": it is there"
	case receivesAll:
		if is.task == toWrite {
			return "decides to delete the row"
		}
		return "leaves the row"
	case pays:
		return "ends the pass"
	}
	return p.commits(t.Step.Act, was)
}

// commits tells how a page is committed.
func (p CaptureProtocol) commits(act uint8, was capturer) string {
	switch act {
	case skips:
		return "finds that its page is in the database"
	case commitsUnheard:
		return "commits " + pageText(was.page) + ", and the answer is lost"
	case commitsLate:
		return "sends COMMIT, which is still on its way, and loses its connection: " + pageText(was.page)
	}
	return "commits " + pageText(was.page)
}

func joinText(was captureFeed, is capturer) string {
	switch f := is.feed; {
	case was.at.id == 0 || f.at.offset != was.at.offset || f.base != was.base:
		return fmt.Sprintf("joins the stream at its end, offset %d%s", f.at.offset, owesPassNow(was, f))
	case f.at.id != was.at.id:
		return fmt.Sprintf("continues at offset %d in history %d%s", f.at.offset, f.at.id, owesPassNow(was, f))
	default:
		return fmt.Sprintf("continues at offset %d", f.at.offset)
	}
}

func owesPassNow(was, is captureFeed) string {
	if is.owed > was.owed {
		return ", and owes a pass"
	}
	return ""
}

func placeText(at capturePlace) string {
	if at == (capturePlace{}) {
		return "none"
	}
	return fmt.Sprintf("history %d, offset %d, seen %d, %s", at.at.id, at.at.offset, at.seen,
		[...]string{"nothing owed", "a pass owed", "a pass that deletes owed"}[at.owed])
}

func valueOf(g capturePage) string {
	if g.value == 0 {
		return "it is missing"
	}
	return fmt.Sprint(g.value)
}

// pageText tells what a transaction writes.
func pageText(g capturePage) string {
	row := "no row"
	switch {
	case g.has && g.value == 0:
		row = "no row " + keyName(g.key)
	case g.has:
		row = fmt.Sprintf("row %s = %d", keyName(g.key), g.value)
	}
	if g.sweep {
		return row
	}
	return row + ", and the place: " + placeText(g.to)
}

func pendingKeys(ks keySet) string {
	if ks == 0 {
		return "none"
	}
	return keyNames(ks)
}

// String returns the value of on_flush.
func (o OnFlush) String() string { return [...]string{"stop", "pass", "delete"}[o] }
