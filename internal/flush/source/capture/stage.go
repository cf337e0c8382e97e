package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"baton/internal/flush"
	"baton/internal/redisconn/follow"
)

// batch holds the changes that one stage took from a feed.
type batch struct {
	keys       map[string]struct{}
	marks      []taken
	debt       int   // the debts that this pass pays; 0: the batch is no pass
	breaks     int   // of the feed, when the batch was taken
	owed       owed  // of the places of a pass
	leaves     owed  // owed in the last place of a batch that is no pass
	cutOff     bool  // the stream is not followed: the batch only moves the place
	alarming   bool  // a pass that is owed for another reason than a new job
	missed     error // why the pass may have missed keys
	promotions int   // of the feed, when the last values were read
	text       string
	place      place
	places     []uint64 // the checksums of all places that its pages may have written
	final      string   // the last of these places
}

// taken is a mark at the time of the batch.
type taken struct {
	*mark
	at  follow.Position
	own string
}

// resume makes the feed continue at the place in the database, and waits until the streams are followed. Its error is the reason why they
// are not.
func (f *feed) resume(ctx context.Context, text string) error {
	p, err := parsePlace(text)
	if err != nil {
		return err
	}
	if !f.settle(text, p) {
		f.close()
		f.restart(text, p)
		f.follower.add(f)
	}
	return f.await(ctx, f.failures(), func() bool { return f.joined || f.movesOnly() })
}

// catchUp waits until the feed has received all changes up to heads, if the streams are followed.
func (f *feed) catchUp(ctx context.Context, heads heads) error {
	return f.awaitReceivedOr(ctx, heads, f.movesOnly)
}

// awaitReceived does the same, and a place that can be moved is not enough.
func (f *feed) awaitReceived(ctx context.Context, heads heads) error {
	return f.awaitReceivedOr(ctx, heads, func() bool { return false })
}

// awaitReceivedOr is awaitReceived, but ends also when enough returns true. A master that was replaced, and does not know that yet, may
// have named the end of its history: no reader will receive changes of that, while the streams are followed.
func (f *feed) awaitReceivedOr(ctx context.Context, heads heads, enough func() bool) (err error) {
	var former error
	err = f.await(ctx, heads.tries, func() bool {
		if f.joined && slices.ContainsFunc(heads.all, func(head follow.Position) bool { return !f.follows(head.ReplID) }) {
			former = fmt.Errorf("a master answered that was replaced: %w", follow.ErrNotMaster)
		}
		return former != nil || enough() || f.hasReceived(heads.all)
	})
	return cmp.Or(err, former)
}

// follows reports whether a history of that name is followed.
func (f *feed) follows(replID string) bool {
	return slices.ContainsFunc(f.marks, func(m *mark) bool { return m.reader != nil && m.at.ReplID == replID })
}

func (f *feed) hasReceived(heads []follow.Position) bool {
	return f.joined && !slices.ContainsFunc(heads, func(head follow.Position) bool {
		return !slices.ContainsFunc(f.marks, func(m *mark) bool {
			return m.reader != nil && m.at.ReplID == head.ReplID && m.at.Offset >= head.Offset
		})
	})
}

// errReleased: the feed will receive no more changes.
var errReleased = errors.New("the stream is not followed any more: the job was taken out or replaced, or its store was closed")

// await waits until so returns true. It returns the last failure to follow a stream after more than tries of them, or at once if it is a
// refusal.
func (f *feed) await(ctx context.Context, tries int, so func() bool) error {
	tick := time.NewTicker(time.Second) // after a reload another run may have taken the entry of changed
	defer tick.Stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	for !so() {
		if f.problem != nil && (f.tries > tries || errors.Is(f.problem, follow.ErrRefused)) {
			return f.problem
		}
		if !f.begun {
			return errReleased
		}
		f.mu.Unlock()
		select {
		case <-f.changed:
		case <-tick.C:
		case <-ctx.Done():
		}
		f.mu.Lock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// isCutOff reports whether the feed receives no changes, and needs none.
func (f *feed) isCutOff() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.movesOnly()
}

// movesOnly reports whether a stream is not followed, and the only work is to move a place: after the server has stopped, its backlog
// begins where it ended.
func (f *feed) movesOnly() bool {
	return f.begun && !f.joined && f.problem != nil && len(f.pending) == 0 && f.emptied == "" && f.debts == f.paid && f.base != "" &&
		f.shouldMove()
}

// settle finds out which pages of the last batch the database has; false if another leader has moved the place, or the feed has not
// begun.
func (f *feed) settle(text string, p place) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.batch
	if !f.begun || text != f.base && (b == nil || !slices.Contains(b.places, sumOf(text))) {
		return false
	}
	moved := b != nil && (text == b.final || b.debt > 0 && text != f.base)
	f.batch, f.base, f.place = nil, text, p
	if moved {
		for _, t := range b.marks {
			t.base = t.at
		}
	}
	if b == nil || b.final == text {
		return true
	}
	for key := range b.keys { // keys of committed pages are written once more
		if _, there := f.pending[key]; !there && !f.full {
			f.pending[key] = struct{}{}
			f.bytes += keyCost + len(key)
		}
	}
	f.bound()
	return true
}

// restart makes the feed begin at a place.
func (f *feed) restart(text string, p place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clear()
	f.begun, f.gen = true, f.gen+1
	f.batch, f.base, f.place, f.moved, f.since, f.passAfter = nil, text, p, time.Now(), time.Now(), time.Time{}
	f.full, f.emptied, f.deletes, f.debts, f.paid, f.tries, f.problem = false, "", 0, 0, 0, 0, nil
	f.marks, f.joinNotes, f.reread = nil, nil, reread{}
	for _, m := range p.marks {
		f.marks = append(f.marks, &mark{at: m.at, base: m.at, seen: m.seen, slots: m.slots})
	}
	switch {
	case text == "":
		f.oweLocked(isNew, "the job is new")
	case p.owed != owesNothing:
		f.oweLocked(notFinished, "an earlier pass was not finished")
		if p.owed == owesDelete {
			f.deletes = f.debts
		}
	}
}

// take takes the batch for the next stage; nil if there is nothing to do. note is a message for the operator.
func (f *feed) take(onFlush string) (b *batch, note string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.emptied != "" {
		if err := f.decide(onFlush); err != nil {
			return nil, "", err
		}
	}
	if f.breaks != f.whole {
		f.clear() // a pass is owed, and pending keys may be missing now without a command for that
	}
	notes := f.joinNotes
	switch {
	case f.passes():
		b = &batch{debt: f.debts, owed: f.owes(), alarming: f.reason != isNew}
		notes = append(notes, "all keys are read: "+f.why)
		f.report(PassBegun, string(f.reason), f.why)
		f.full = false // pending keys stay: see unaccounted
	case len(f.pending) == 0 && !f.shouldMove():
		return nil, "", nil
	default:
		b = &batch{keys: f.pending, leaves: f.owes()}
		f.clear()
	}
	f.joinNotes = nil
	b.text, b.place, b.cutOff, b.promotions, b.breaks = f.base, f.place, !f.joined, f.promotions, f.breaks
	for _, m := range f.marks {
		b.marks = append(b.marks, taken{m, m.at, m.own})
	}
	f.batch, f.taken, f.takenAt = b, len(b.keys), time.Now()
	return b, strings.Join(notes, "; "), nil
}

// passes reports whether the next batch is a pass.
func (f *feed) passes() bool { return f.debts > f.paid && !time.Now().Before(f.passAfter) }

// owes is the debt of a pass that the next place records.
func (f *feed) owes() owed {
	switch {
	case f.debts == f.paid:
		return owesNothing
	case f.deletes > f.paid:
		return owesDelete
	}
	return owesPass
}

// decide follows on_flush after a command that has emptied the database.
func (f *feed) decide(onFlush string) error {
	command := f.emptied
	switch onFlush {
	case flushPass, flushDelete:
		f.emptied = ""
		f.oweLocked(wasEmptied, command+" was called, and on_flush is "+onFlush)
		if onFlush == flushDelete {
			f.deletes = f.debts
		}
		return nil
	}
	return fmt.Errorf("%w by %s: nothing is written until somebody has decided. If that was a mistake, put the data back. Then set "+
		"on_flush for one run: pass reads all keys, and deletes no more rows than max_pct; delete deletes every row that has no key",
		flush.ErrEmptied, command)
}

// wasEmptied reports whether a command has emptied the database, without a decision yet.
func (f *feed) wasEmptied() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.emptied != ""
}

// move is the move of a page. final: the page is the last one of the batch.
func (f *feed) move(b *batch, final bool) *flush.Move {
	f.mu.Lock()
	defer f.mu.Unlock()
	to := place{serial: b.place.serial + 1, owed: b.place.owed}
	switch {
	case b.debt > 0:
		to.owed = b.owed
	case final && f.breaks != b.breaks: // the batch has left out rows that were to be deleted
		to.owed = f.owes()
	case final:
		to.owed = b.leaves
	}
	for _, t := range b.marks {
		m := placeMark{at: t.base, seen: t.seen, slots: t.slots}
		if b.debt > 0 || final {
			m.at = t.at
		}
		if m.at.ReplID != "" {
			to.marks = append(to.marks, m)
		}
	}
	m := &flush.Move{From: b.text, To: to.String()}
	b.text, b.place = m.To, to
	b.places = append(b.places, sumOf(m.To))
	if final {
		b.final = m.To
	}
	f.moved = time.Now()
	return m
}

// noteSeen notes the offsets up to which values were read from the masters. It is an error if one of the masters is not a followed one.
func (f *feed) noteSeen(b *batch, heads []follow.Position) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, head := range heads {
		i := slices.IndexFunc(f.marks, func(m *mark) bool { return head.ReplID == m.at.ReplID || head.ReplID == m.former.id })
		if i < 0 {
			return fmt.Errorf("the values were read of another master than the one whose changes are followed: %w", follow.ErrNotMaster)
		}
		m := f.marks[i]
		if head.ReplID != m.at.ReplID && head.Offset > m.former.shared || head.ReplID == m.at.ReplID && b.promotions != f.promotions {
			f.oweLocked(lostFailover, "values were read of a master that was replaced in that moment")
		}
		m.seen = max(m.seen, head.Offset)
	}
	b.promotions = f.promotions
	return nil
}

// retryPass is how long after a pass that missed keys the next one may begin.
const retryPass = 2 * time.Second

// pay notes that a pass is complete, and committed.
func (f *feed) pay(b *batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.batch != b:
		return
	case b.missed != nil: // changes go on meanwhile
		f.passAfter = time.Now().Add(retryPass)
		f.report(PassEnded, incomplete, b.missed.Error())
		f.reason = missedAnyhow
		return
	}
	for _, t := range b.marks {
		if t.own != "" {
			t.slots, t.doubted = t.own, ""
		}
	}
	f.report(PassEnded, complete, "all keys were read")
	f.paid = max(f.paid, b.debt)
}

// When to move the place of a job without work: otherwise it would fall out of the server's backlog.
const (
	moveEvery = 30 * time.Second
	moveShare = 8 // after this part of the backlog
)

// shouldMove reports whether the place in the database should follow the streams, without any changes.
func (f *feed) shouldMove() bool {
	text, owed, bases := f.written()
	switch {
	case len(f.marks) == 0:
		return false
	case text == "" || owed != f.owes(): // the owed pass is over
		return true
	}
	return slices.ContainsFunc(f.marks, func(m *mark) bool {
		base := m.base
		if at, ok := bases[m]; ok {
			base = at
		}
		return m.at != base && (!f.joined || m.at.ReplID != base.ReplID ||
			time.Since(f.moved) > moveEvery || m.at.Offset-base.Offset > m.backlog/moveShare)
	})
}

// written is the place in the database, as far as the feed knows before the next run reads it: if all pages of the batch were yielded
// they are committed, or their run has failed and another one follows. Otherwise a run would begin for nothing after every long batch,
// and rest.
func (f *feed) written() (text string, owed owed, bases map[*mark]follow.Position) {
	b := f.batch
	if b == nil || b.final == "" {
		return f.base, f.place.owed, nil
	}
	bases = make(map[*mark]follow.Position, len(b.marks))
	for _, t := range b.marks {
		bases[t.mark] = t.at
	}
	return b.final, b.place.owed, bases
}

// hasWork reports whether a run would have work, or something to report.
func (f *feed) hasWork() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case !f.begun || f.emptied != "" || f.passes():
		return true
	case f.joined:
		return len(f.pending) > 0 || f.shouldMove()
	}
	return f.movesOnly() || time.Since(f.since) > patience
}

// patience is how long a stream may be interrupted before that is an error.
const patience = 5 * time.Second
