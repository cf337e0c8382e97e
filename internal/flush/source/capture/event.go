package capture

import (
	"errors"
	"slices"

	"baton/internal/redisconn/follow"
)

// Event is something that happened while the streams were followed for a job.
type Event struct {
	Kind  EventKind
	Code  string // one of Hows, Breaks, Reasons or Results
	Words string // the same in words, for people
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

// Hows returns the names of the ways to join a stream.
func Hows() []string {
	return []string{follow.Continued.String(), follow.Promoted.String(), follow.Began.String(), follow.Resynced.String()}
}

// Reason says why a pass over all keys is required.
type Reason string

// These are the reasons why a pass over all keys is required.
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

// breaks reports whether a key may be missing, after an event with this reason, although the feed has received no command that removed the
// key.
func (r Reason) breaks() bool {
	switch r {
	case isNew, tooMany, notFinished, missedAnyhow, otherMapping, otherTable:
		return false
	}
	return true
}

// Reasons returns all reasons.
func Reasons() []string {
	all := []Reason{isNew, lostHistory, lostFailover, lostBacklog, otherMasters, otherSlots, notKnown, notReadable, tooMany, wasEmptied,
		notFinished, missedAnyhow, otherMapping, otherTable}
	texts := make([]string, len(all))
	for i, r := range all {
		texts[i] = string(r)
	}
	return texts
}

// These are the results of a pass.
const (
	complete   = "complete"
	incomplete = "incomplete" // the pass may have missed keys, and is repeated
)

// Results returns the results of a pass.
func Results() []string { return []string{complete, incomplete} }

// breaks lists the errors after which a stream is no longer followed, with their codes.
var breaks = []struct {
	code string
	err  error
}{{Refused, follow.ErrRefused}, {"not_master", follow.ErrNotMaster}, {"stopping", follow.ErrStopping}, {"stopping", follow.ErrLeft},
	{"silent", follow.ErrSilent}, {"garbled", follow.ErrGarbled}}

// Refused is the code if the server does not allow baton, or baton's user, to follow the stream.
const Refused = "refused"

const otherBreak = "connection"

// Breaks returns the codes of the reasons why a stream is not followed.
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

// mostEvents is the maximum number of events that wait for a call of ProgressOf.
const mostEvents = 100

// report keeps an event for the next call of ProgressOf. The caller holds f.mu.
func (f *feed) report(kind EventKind, code, words string) {
	if len(f.events) == mostEvents {
		f.events = f.events[1:]
	}
	f.events = append(f.events, Event{kind, code, words})
}
