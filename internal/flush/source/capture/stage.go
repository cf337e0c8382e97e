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
	cursors    []batchCursor
	passesOwed int      // the value of the feed's passesOwed up to which this pass settles the owed passes; 0 if the batch is no pass
	breaks     int      // the value of the feed's breaks when the batch was taken
	owed       passOwed // written in the positions of a pass
	leaves     passOwed // written in the last position of a batch that is no pass
	cutOff     bool     // the stream is not followed: the batch only moves the position
	alarming   bool     // a pass whose reason is not that the job is new
	missed     error    // the reason why the pass may have missed keys
	promotions int      // the value of the feed's promotions when the last values were read
	text       string
	place      jobPosition
	places     []uint64 // the checksums of all positions that the batch's pages may have written
	final      string   // the last of these positions
}

// batchCursor is the state of a feed's cursor when the batch was taken.
type batchCursor struct {
	*cursor
	at  follow.Position
	own string
}

// resume makes the feed continue at the position in the database, and waits until the streams are followed. If they cannot be followed, it
// returns the reason as an error.
func (f *feed) resume(ctx context.Context, text string) error {
	p, err := parsePosition(text)
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

// catchUp waits until the feed has received all changes up to the positions in heads. It does not wait if the streams are not followed and
// the batch would only move the position.
func (f *feed) catchUp(ctx context.Context, heads heads) error {
	return f.awaitReceivedOr(ctx, heads, f.movesOnly)
}

// awaitReceived waits until the feed has received all changes up to the positions in heads, also if the batch would only move the position.
func (f *feed) awaitReceived(ctx context.Context, heads heads) error {
	return f.awaitReceivedOr(ctx, heads, func() bool { return false })
}

// awaitReceivedOr works like awaitReceived, but also ends when the function enough returns true. This is needed because heads may contain
// the end of the history of a master that was replaced and has not noticed that yet. No reader will receive changes of that history,
// although the streams are followed.
func (f *feed) awaitReceivedOr(ctx context.Context, heads heads, enough func() bool) (err error) {
	var former error
	err = f.await(ctx, heads.tries, func() bool {
		if f.joined && slices.ContainsFunc(heads.all, func(head follow.Position) bool { return !f.follows(head.ReplID) }) {
			former = fmt.Errorf("the answer came from a master that was replaced: %w", follow.ErrNotMaster)
		}
		return former != nil || enough() || f.hasReceived(heads.all)
	})
	return cmp.Or(err, former)
}

// follows reports whether the history with that replication id is followed.
func (f *feed) follows(replID string) bool {
	return slices.ContainsFunc(f.cursors, func(m *cursor) bool { return m.reader != nil && m.at.ReplID == replID })
}

func (f *feed) hasReceived(heads []follow.Position) bool {
	return f.joined && !slices.ContainsFunc(heads, func(head follow.Position) bool {
		return !slices.ContainsFunc(f.cursors, func(m *cursor) bool {
			return m.reader != nil && m.at.ReplID == head.ReplID && m.at.Offset >= head.Offset
		})
	})
}

// errReleased means that the feed will receive no more changes.
var errReleased = errors.New("baton no longer follows the stream, because the job was removed or replaced, or its store was closed")

// await waits until the function so returns true. If the feed has failed more often than the given number of times, await returns the last
// failure. If the server refuses to be followed, await returns this refusal immediately.
func (f *feed) await(ctx context.Context, tries int, so func() bool) error {
	tick := time.NewTicker(time.Second) // after a reload another run may have received the entry of changed
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

// isCutOff reports whether the feed is cut off from a stream, and needs no changes because the next batch only moves the position.
func (f *feed) isCutOff() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.movesOnly()
}

// movesOnly reports whether a stream is not followed, and the only work is to move the position. Moving the position must be possible
// without the stream, because the backlog of a restarted server begins where the server had ended.
func (f *feed) movesOnly() bool {
	return f.begun && !f.joined && f.problem != nil && len(f.pending) == 0 && f.emptied == "" &&
		f.passesOwed == f.passesDone && f.base != "" && f.shouldMove()
}

// settle finds out, from the position in the database, which pages of the last batch are committed. It returns false if another leader has
// moved the position, or if the feed has not begun.
func (f *feed) settle(text string, p jobPosition) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.batch
	if !f.begun || text != f.base && (b == nil || !slices.Contains(b.places, sumOf(text))) {
		return false
	}
	moved := b != nil && (text == b.final || b.passesOwed > 0 && text != f.base)
	f.batch, f.base, f.place = nil, text, p
	if moved {
		for _, t := range b.cursors {
			t.base = t.at
		}
	}
	if b == nil || b.final == text {
		return true
	}
	for key := range b.keys { // all keys of the batch are pending again, also the keys of pages that are committed
		if _, there := f.pending[key]; !there && !f.full {
			f.pending[key] = struct{}{}
			f.bytes += keyCost + len(key)
		}
	}
	f.bound()
	return true
}

// restart makes the feed begin again at the position that was read from the database.
func (f *feed) restart(text string, p jobPosition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clear()
	f.begun, f.gen = true, f.gen+1
	f.batch, f.base, f.place, f.moved, f.since, f.passAfter = nil, text, p, time.Now(), time.Now(), time.Time{}
	f.full, f.emptied, f.deletes, f.passesOwed, f.passesDone, f.tries, f.problem = false, "", 0, 0, 0, 0, nil
	f.cursors, f.joinNotes, f.reread = nil, nil, reread{}
	for _, m := range p.masters {
		f.cursors = append(f.cursors, &cursor{at: m.at, base: m.at, seen: m.seen, slots: m.slots})
	}
	switch {
	case text == "":
		f.oweLocked(isNew, "the job is new")
	case p.owed != owesNothing:
		f.oweLocked(notFinished, "an earlier pass was not finished")
		if p.owed == owesDelete {
			f.deletes = f.passesOwed
		}
	}
}

// take returns the batch for the next stage, or nil if there is nothing to do. The result note is a message for the operator.
func (f *feed) take(onFlush string) (b *batch, note string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.emptied != "" {
		if err := f.decide(onFlush); err != nil {
			return nil, "", err
		}
	}
	if f.breaks != f.whole {
		f.clear() // a pass is owed, and pending keys may be missing now although the feed has received no command that removed them
	}
	notes := f.joinNotes
	switch {
	case f.passes():
		b = &batch{passesOwed: f.passesOwed, owed: f.owes(), alarming: f.reason != isNew}
		notes = append(notes, "all keys are read: "+f.why)
		f.report(PassBegun, string(f.reason), f.why)
		f.full = false // pending keys are not dropped: see unaccounted
	case len(f.pending) == 0 && !f.shouldMove():
		return nil, "", nil
	default:
		b = &batch{keys: f.pending, leaves: f.owes()}
		f.clear()
	}
	f.joinNotes = nil
	b.text, b.place, b.cutOff, b.promotions, b.breaks = f.base, f.place, !f.joined, f.promotions, f.breaks
	for _, m := range f.cursors {
		b.cursors = append(b.cursors, batchCursor{m, m.at, m.own})
	}
	f.batch, f.taken, f.takenAt = b, len(b.keys), time.Now()
	return b, strings.Join(notes, "; "), nil
}

// passes reports whether the next batch is a pass over all keys.
func (f *feed) passes() bool { return f.passesOwed > f.passesDone && !time.Now().Before(f.passAfter) }

// owes returns the value of passOwed for the next position in the database.
func (f *feed) owes() passOwed {
	switch {
	case f.passesOwed == f.passesDone:
		return owesNothing
	case f.deletes > f.passesDone:
		return owesDelete
	}
	return owesPass
}

// decide applies the setting on_flush after a command has emptied the database.
func (f *feed) decide(onFlush string) error {
	command := f.emptied
	switch onFlush {
	case flushPass, flushDelete:
		f.emptied = ""
		f.oweLocked(wasEmptied, command+" was called, and on_flush is "+onFlush)
		if onFlush == flushDelete {
			f.deletes = f.passesOwed
		}
		return nil
	}
	return fmt.Errorf("%w by %s: nothing is written until you decide. If the data was deleted by mistake, restore it first. Then "+
		"set on_flush for one run: `pass` reads all keys and deletes at most max_pct percent of the rows; `delete` deletes every row "+
		"without a key",
		flush.ErrEmptied, command)
}

// wasEmptied reports whether a command has emptied the database, and on_flush has not been applied yet.
func (f *feed) wasEmptied() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.emptied != ""
}

// move returns the step by which a page of the batch moves the job's position in the database. If final is true, the page is the last page
// of the batch.
func (f *feed) move(b *batch, final bool) *flush.Move {
	f.mu.Lock()
	defer f.mu.Unlock()
	to := jobPosition{serial: b.place.serial + 1, owed: b.place.owed}
	switch {
	case b.passesOwed > 0:
		to.owed = b.owed
	case f.breaks != b.breaks: // the batch has left out deletions, or has values that a failover has lost
		to.owed = f.owes()
	case final:
		to.owed = b.leaves
	}
	for _, t := range b.cursors {
		m := masterPosition{at: t.base, seen: t.seen, slots: t.slots}
		if b.passesOwed > 0 || final {
			m.at = t.at
		}
		if m.at.ReplID != "" {
			to.masters = append(to.masters, m)
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

// noteSeen records the offsets of the masters at the time when values were read from them. It returns an error if one of the masters is not
// followed.
func (f *feed) noteSeen(b *batch, heads []follow.Position) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, head := range heads {
		i := slices.IndexFunc(f.cursors, func(m *cursor) bool { return head.ReplID == m.at.ReplID || head.ReplID == m.former.id })
		if i < 0 {
			return fmt.Errorf("the values were read from a master whose changes are not followed: %w", follow.ErrNotMaster)
		}
		m := f.cursors[i]
		if head.ReplID != m.at.ReplID && head.Offset > m.former.shared || head.ReplID == m.at.ReplID && b.promotions != f.promotions {
			f.oweLocked(lostFailover, "a master was replaced while values were read from it")
		}
		m.seen = max(m.seen, head.Offset)
	}
	b.promotions = f.promotions
	return nil
}

// retryPass is the minimum pause between a pass that may have missed keys and the next pass.
const retryPass = 2 * time.Second

// pay records that the pass of the batch is complete and committed, so that this pass is no longer required. If the pass may have missed
// keys, another pass follows.
func (f *feed) pay(b *batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.batch != b:
		return
	case b.missed != nil: // until the next pass, changes are still followed
		f.passAfter = time.Now().Add(retryPass)
		f.report(PassEnded, incomplete, b.missed.Error())
		f.reason = missedAnyhow
		return
	}
	for _, t := range b.cursors {
		if t.own != "" {
			t.slots, t.doubted = t.own, ""
		}
	}
	f.report(PassEnded, complete, "all keys were read")
	f.passesDone = max(f.passesDone, b.passesOwed)
}

// A job without changes moves its position when one of these limits is reached. Otherwise the position would fall out of the server's
// backlog.
const (
	moveEvery = 30 * time.Second
	moveShare = 8 // the part is the backlog divided by this number
)

// shouldMove reports whether the position in the database should follow the streams although no key has changed.
func (f *feed) shouldMove() bool {
	text, owed, bases := f.written()
	switch {
	case len(f.cursors) == 0:
		return false
	case text == "" || owed != f.owes(): // the owed pass is complete
		return true
	}
	return slices.ContainsFunc(f.cursors, func(m *cursor) bool {
		base := m.base
		if at, ok := bases[m]; ok {
			base = at
		}
		return m.at != base && (!f.joined || m.at.ReplID != base.ReplID ||
			time.Since(f.moved) > moveEvery || m.at.Offset-base.Offset > m.backlog/moveShare)
	})
}

// written returns the position in the database, as far as the feed knows before the next run reads the position. If all pages of the batch
// were yielded, written assumes that the pages are committed, because after a failure another run follows in any case. Without this
// assumption, a needless run would begin after every long batch.
func (f *feed) written() (text string, owed passOwed, bases map[*cursor]follow.Position) {
	b := f.batch
	if b == nil || b.final == "" {
		return f.base, f.place.owed, nil
	}
	bases = make(map[*cursor]follow.Position, len(b.cursors))
	for _, t := range b.cursors {
		bases[t.cursor] = t.at
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

// patience is how long a stream may be interrupted before the interruption counts as an error.
const patience = 5 * time.Second
