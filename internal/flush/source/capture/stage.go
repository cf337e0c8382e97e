package capture

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"baton/internal/flush"
	"baton/internal/redisconn/follow"
)

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
	}
	return f.until(ctx, func() bool { return f.joined || f.movesOnly() })
}

// catchUp waits until all changes up to here have been heard of, if the stream is followed.
func (f *feed) catchUp(ctx context.Context, head follow.Position) error {
	return f.until(ctx, func() bool {
		return f.movesOnly() || f.joined && f.reached.ReplID == head.ReplID && f.reached.Offset >= head.Offset
	})
}

// until waits until something is so. Its error says why the stream is not followed.
func (f *feed) until(ctx context.Context, so func() bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for tries := f.tries; !so(); {
		if f.tries > tries && f.problem != nil {
			return f.problem
		}
		f.mu.Unlock()
		select {
		case <-f.changed:
		case <-ctx.Done():
		}
		f.mu.Lock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// movesOnly reports whether the stream is not followed, and there is nothing but a place to be moved: after the server has stopped,
// its backlog begins where it ended.
func (f *feed) movesOnly() bool {
	return f.end != nil && !f.joined && len(f.pending) == 0 && f.emptied == "" && f.debts == f.paid && f.base != "" && f.shouldMove()
}

// settle finds out what the database has of the last batch; false if another leader has moved the place, or the
// feed has not begun.
func (f *feed) settle(text string, p place) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.batch
	if f.end == nil || text != f.base && (b == nil || !slices.Contains(b.places, text)) {
		return false
	}
	f.batch, f.base, f.place = nil, text, p
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

// restart begins to follow from a place.
func (f *feed) restart(text string, p place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clear()
	f.batch, f.base, f.place, f.moved = nil, text, p, time.Now()
	f.full, f.emptied, f.deletes, f.debts, f.paid, f.tries, f.problem = false, "", p.owed == owesDelete, 0, 0, 0, nil
	f.seen, f.reached, f.former = p.seen, p.at, former{}
	switch {
	case text == "":
		f.oweLocked("the job is new")
	case p.owed != owesNothing:
		f.oweLocked("an earlier pass was not finished")
	}
	if p.at.ReplID == "" {
		f.start(nil)
		return
	}
	f.start(&p.at)
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
	news := f.news
	f.news = ""
	switch {
	case f.debts > f.paid:
		b = &batch{debt: f.debts, owed: owesPass}
		if f.deletes {
			b.owed = owesDelete
		}
		note = joinNotes(news, "all keys are read: "+f.why)
		f.clear()
		f.full = false
	case len(f.pending) == 0 && !f.shouldMove():
		f.news = news
		return nil, "", nil
	default:
		b, note = &batch{keys: f.pending}, news
		f.clear()
	}
	b.at, b.text, b.place, b.cutOff = f.reached, f.base, f.place, !f.joined
	f.batch = b
	return b, note, nil
}

func joinNotes(notes ...string) string {
	return strings.Join(slices.DeleteFunc(notes, func(n string) bool { return n == "" }), "; ")
}

// decide does what the job says about a command that has emptied the database.
func (f *feed) decide(onFlush string) error {
	command := f.emptied
	switch onFlush {
	case flushPass, flushDelete:
		f.emptied = ""
		f.deletes = f.deletes || onFlush == flushDelete
		f.oweLocked(command + " was called, and on_flush is " + onFlush)
		return nil
	}
	return fmt.Errorf("%w by %s: nothing is written until somebody has decided. If that was a mistake, put the data back. Then set "+
		"on_flush for one run: pass reads all keys, and deletes no more rows than max_pct; delete deletes every row that has no key",
		flush.ErrEmptied, command)
}

// move is the step of a page. final: it is the last page of the batch.
func (f *feed) move(b *batch, final bool) *flush.Move {
	f.mu.Lock()
	defer f.mu.Unlock()
	to := b.place
	to.seen = max(to.seen, f.seen)
	to.serial++
	switch {
	case b.debt > 0:
		to.at, to.owed = b.at, b.owed
	case final:
		to.at, to.owed = b.at, owesNothing
	}
	m := &flush.Move{From: b.text, To: to.String()}
	b.text, b.place = m.To, to
	b.places = append(b.places, m.To)
	if final {
		b.final = m.To
	}
	f.moved = time.Now()
	return m
}

// pay notes that a pass is complete, and committed.
func (f *feed) pay(b *batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.batch != b || b.missed != nil {
		return
	}
	if f.paid = max(f.paid, b.debt); f.paid == f.debts {
		f.deletes = false
	}
}

// works reports whether a run would do something, or has to say something.
func (f *feed) works() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.end == nil || f.emptied != "" || f.debts > f.paid:
		return true
	case f.joined:
		return len(f.pending) > 0 || f.shouldMove()
	}
	return f.movesOnly() || time.Since(f.left) > patience
}

// patience is how long a stream may be interrupted before that is an error.
const patience = 5 * time.Second

var _ follow.Handler = (*feed)(nil)
