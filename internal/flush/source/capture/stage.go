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

// batch is what was taken out of a feed for one stage.
type batch struct {
	keys       map[string]struct{}
	marks      []taken
	debt       int   // the debts that this pass pays; 0: it is none
	breaks     int   // of the feed, when it was taken
	owed       owed  // of the places of a pass
	leaves     owed  // of the last place of what is none: what is owed then
	cutOff     bool  // the stream is not followed: it only moves the place
	missed     error // why the pass may have missed something
	promotions int   // of the feed, when the last values were read
	text       string
	place      place
	places     []uint64 // the sums of all that the database may have made of it
	final      string   // the last of them
}

// taken is a mark as it was then.
type taken struct {
	*mark
	at  follow.Position
	own string
}

// resume makes the feed go on from where the database is, and waits until the stream is followed. Its
// error says why it is not.
func (f *feed) resume(ctx context.Context, text string) error {
	p, err := parsePlace(text)
	if err != nil {
		return err
	}
	if !f.settle(text, p) {
		f.close()
		f.restart(text, p)
		f.hub.add(f)
	}
	return f.until(ctx, f.failures(), func() bool { return f.joined || f.movesOnly() })
}

// catchUp waits until all changes up to here have been heard of, if the streams are followed.
func (f *feed) catchUp(ctx context.Context, heads heads) error {
	return f.hearOr(ctx, heads, f.movesOnly)
}

// hear is that, where it is not enough that a place can be moved.
func (f *feed) hear(ctx context.Context, heads heads) error {
	return f.hearOr(ctx, heads, func() bool { return false })
}

// hearOr is hear, or until enough is so. A master that was replaced, and does not know it yet, may have named the end of its
// history: nothing of that will be heard, while the streams are followed.
func (f *feed) hearOr(ctx context.Context, heads heads, enough func() bool) (err error) {
	var former error
	err = f.until(ctx, heads.tries, func() bool {
		if f.joined && slices.ContainsFunc(heads.all, func(head follow.Position) bool { return !f.follows(head.ReplID) }) {
			former = fmt.Errorf("a master answered that was replaced: %w", follow.ErrNotMaster)
		}
		return former != nil || enough() || f.heard(heads.all)
	})
	return cmp.Or(err, former)
}

// follows reports whether the history of that name is followed.
func (f *feed) follows(replID string) bool {
	return slices.ContainsFunc(f.marks, func(m *mark) bool { return m.line != nil && m.at.ReplID == replID })
}

func (f *feed) heard(heads []follow.Position) bool {
	return f.joined && !slices.ContainsFunc(heads, func(head follow.Position) bool {
		return !slices.ContainsFunc(f.marks, func(m *mark) bool {
			return m.line != nil && m.at.ReplID == head.ReplID && m.at.Offset >= head.Offset
		})
	})
}

// errReleased: nothing will be heard of any more.
var errReleased = errors.New("the stream is not followed any more: the job was taken out or replaced, or its store was closed")

// until waits until something is so. Its error says why a stream is not followed, as of more failures than tries.
func (f *feed) until(ctx context.Context, tries int, so func() bool) error {
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

// isCutOff reports whether nothing can be heard of, and need not be.
func (f *feed) isCutOff() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.movesOnly()
}

// movesOnly reports whether a stream is not followed, and there is nothing but a place to be moved: after the server has stopped,
// its backlog begins where it ended.
func (f *feed) movesOnly() bool {
	return f.begun && !f.joined && f.problem != nil && len(f.pending) == 0 && f.emptied == "" && f.debts == f.paid && f.base != "" &&
		f.shouldMove()
}

// settle finds out what the database has of the last batch; false if another leader has moved the place, or the
// feed has not begun.
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
	for key := range b.keys { // those of the pages that are committed are written once more
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
	f.marks, f.news, f.reread = nil, nil, reread{}
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

// take takes out what is to be read; nil if there is nothing. note is what the operator should know.
func (f *feed) take(onFlush string) (b *batch, note string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.emptied != "" {
		if err := f.decide(onFlush); err != nil {
			return nil, "", err
		}
	}
	if f.breaks != f.whole {
		f.clear() // a pass is owed, and what is gone by now may be so for what no command has said
	}
	notes := f.news
	switch {
	case f.passes():
		b = &batch{debt: f.debts, owed: f.owes()}
		notes = append(notes, "all keys are read: "+f.why)
		f.reports(PassBegun, string(f.reason), f.why)
		f.full = false // what is pending stays so: see unaccounted
	case len(f.pending) == 0 && !f.shouldMove():
		return nil, "", nil
	default:
		b = &batch{keys: f.pending, leaves: f.owes()}
		f.clear()
	}
	f.news = nil
	b.text, b.place, b.cutOff, b.promotions, b.breaks = f.base, f.place, !f.joined, f.promotions, f.breaks
	for _, m := range f.marks {
		b.marks = append(b.marks, taken{m, m.at, m.own})
	}
	f.batch, f.taken, f.takenAt = b, len(b.keys), time.Now()
	return b, strings.Join(notes, "; "), nil
}

// passes reports whether the next batch is a pass.
func (f *feed) passes() bool { return f.debts > f.paid && !time.Now().Before(f.passAfter) }

// owes is what a place says of a pass.
func (f *feed) owes() owed {
	switch {
	case f.debts == f.paid:
		return owesNothing
	case f.deletes > f.paid:
		return owesDelete
	}
	return owesPass
}

// decide does what the job says about a command that has emptied the database.
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

// wasEmptied reports whether a command has emptied the database, and nobody has decided.
func (f *feed) wasEmptied() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.emptied != ""
}

// move is the step of a page. final: it is the last page of the batch.
func (f *feed) move(b *batch, final bool) *flush.Move {
	f.mu.Lock()
	defer f.mu.Unlock()
	to := place{serial: b.place.serial + 1, owed: b.place.owed}
	switch {
	case b.debt > 0:
		to.owed = b.owed
	case final && f.breaks != b.breaks: // it has left out rows that were to be deleted
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

// saw notes up to where values were read of the masters. Its error says that one of them is none of those
// that are followed.
func (f *feed) saw(b *batch, heads []follow.Position) error {
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

// retryPass is how long after a pass that missed something there is another one.
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
		f.reports(PassEnded, incomplete, b.missed.Error())
		f.reason = missedAnyhow
		return
	}
	for _, t := range b.marks {
		if t.own != "" {
			t.slots, t.doubt = t.own, ""
		}
	}
	f.reports(PassEnded, complete, "all keys were read")
	f.paid = max(f.paid, b.debt)
}

// The occasions on which the place of a job that has nothing to do is moved: so that it does not fall out of
// the server's backlog.
const (
	moveEvery = 30 * time.Second
	moveShare = 8 // after this part of the backlog
)

// shouldMove reports whether the place in the database is to follow the streams, without any changes.
func (f *feed) shouldMove() bool {
	text, owed, bases := f.written()
	switch {
	case len(f.marks) == 0:
		return false
	case text == "" || owed != f.owes(): // the pass that was owed is over
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

// written is the place in the database, as far as can be known before the next run reads it: if all pages of the
// batch were given away they are committed, or their run has failed and another one follows. Else a run would
// begin for nothing after every batch that is long, and rest.
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

// works reports whether a run would do something, or has to say something.
func (f *feed) works() bool {
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
