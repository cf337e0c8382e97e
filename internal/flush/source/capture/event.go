package capture

import (
	"errors"
	"slices"

	"baton/internal/redisconn/follow"
)

// Event is an event in following the streams for a job.
type Event struct {
	Kind  EventKind
	Code  string // one of Hows, Breaks, Reasons or Results
	Words string // the same for people
}

// EventKind is the kind of an event.
type EventKind int

// The kinds of events.
const (
	Joined EventKind = iota
	Interrupted
	PassBegun
	PassEnded
)

// Hows are the ways to join a stream.
func Hows() []string {
	return []string{follow.Continued.String(), follow.Promoted.String(), follow.Began.String(), follow.Resynced.String()}
}

// Reason is the reason why a pass over all keys is owed.
type Reason string

// The reasons.
const (
	isNew        Reason = "new"
	lostHistory  Reason = "history"
	lostFailover Reason = "failover"
	lostBacklog  Reason = "backlog"
	otherMasters Reason = "masters"
	otherSlots   Reason = "slots"
	notKnown     Reason = "command"
	notReadable  Reason = "garbled"
	tooMany      Reason = "budget"
	wasEmptied   Reason = "emptied"
	notFinished  Reason = "unfinished"
	missedAnyhow Reason = "missed"
	otherMapping Reason = "mapping"
	otherTable   Reason = "table"
)

// breaks reports whether, after this, a key may be missing without a command for it.
func (r Reason) breaks() bool {
	switch r {
	case isNew, tooMany, notFinished, missedAnyhow, otherMapping, otherTable:
		return false
	}
	return true
}

// Reasons are all of these reasons.
func Reasons() []string {
	all := []Reason{isNew, lostHistory, lostFailover, lostBacklog, otherMasters, otherSlots, notKnown, notReadable, tooMany, wasEmptied,
		notFinished, missedAnyhow, otherMapping, otherTable}
	texts := make([]string, len(all))
	for i, r := range all {
		texts[i] = string(r)
	}
	return texts
}

// The ends of a pass.
const (
	complete   = "complete"
	incomplete = "incomplete" // it may have missed keys, and is repeated
)

// Results are the ends of a pass.
func Results() []string { return []string{complete, incomplete} }

// breaks are the codes of the reasons why a stream is not followed.
var breaks = []struct {
	code string
	err  error
}{{Refused, follow.ErrRefused}, {"not_master", follow.ErrNotMaster}, {"stopping", follow.ErrStopping}, {"stopping", follow.ErrLeft},
	{"silent", follow.ErrSilent}, {"garbled", follow.ErrGarbled}}

// Refused is the code of a stream that this server, or this user, may not follow.
const Refused = "refused"

const otherBreak = "connection"

// Breaks are the reasons why a stream is not followed.
func Breaks() (all []string) {
	for _, b := range breaks {
		if !slices.Contains(all, b.code) {
			all = append(all, b.code)
		}
	}
	return append(all, otherBreak)
}

func breakOf(err error) string {
	for _, b := range breaks {
		if errors.Is(err, b.err) {
			return b.code
		}
	}
	return otherBreak
}

// mostEvents bounds the events that no caller has taken yet.
const mostEvents = 100

// report keeps an event for the next call of ProgressOf. The caller holds f.mu.
func (f *feed) report(kind EventKind, code, words string) {
	if len(f.events) == mostEvents {
		f.events = f.events[1:]
	}
	f.events = append(f.events, Event{kind, code, words})
}
