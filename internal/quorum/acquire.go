package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"baton/internal/elector"
)

// Acquire implements elector.Lock.
func (l *Lock) Acquire(ctx context.Context, c elector.Candidate) (elector.Answer, error) {
	owner, err := l.candidate(c.Owner)
	if err != nil {
		return elector.Answer{}, err
	}
	asked := c.Owner
	c.Owner = owner
	if c.Floor == 0 && !c.Observer {
		answer, err := l.look(ctx, &c)
		if err != nil || answer.Outcome == elector.Held {
			return answer, err
		}
	}
	sent := l.opts.Clock()
	b := l.vote(ctx, c)
	if len(b.won) < l.majority {
		l.withdraw(ctx, owner, b)
		return l.defeat(b, l.opts.Clock()-sent)
	}
	epoch, known := l.again(owner, b.won)
	if !known {
		epoch, err = l.record(ctx, owner, b.won)
	}
	if err == nil && l.opts.Clock() >= sent+l.opts.TTL-l.opts.Margin {
		err = errors.New("acquire: the answers took so long that nothing is left of the lease")
	}
	if err != nil {
		l.withdraw(ctx, owner, b)
		return elector.Answer{}, err
	}
	l.mu.Lock()
	l.splits = 0
	l.mu.Unlock()
	l.term(owner, epoch)
	for _, ln := range b.missing(l.lanes) {
		l.heal(ctx, ln, owner, epoch)
	}
	answer := elector.Answer{Outcome: elector.Won, Epoch: epoch, FreeFor: b.freeFor()}
	if owner != asked {
		answer.Owner = owner
	}
	return answer, nil
}

// look finds out, for a candidate that knows of no earlier term, whether there was one, and takes nothing. A store without an earlier
// term would take the lock for a new one and grant it at once; here it may be one master that has lost its data, while a leader relies on
// it. So the candidate goes on without a Floor only if all masters answer that they know of no term.
func (l *Lock) look(ctx context.Context, c *elector.Candidate) (elector.Answer, error) {
	if deadline, ok := ctx.Deadline(); ok {
		// One master that hangs must leave time to ask for the lock as well.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	watcher := *c
	watcher.Observer = true
	b := l.vote(ctx, watcher)
	if _, held := l.holder(b); held || b.answered() < l.majority {
		return l.defeat(b, 0)
	}
	c.Floor = b.epoch()
	if b.answered() < len(l.lanes) || len(b.held) > 0 {
		c.Floor = max(c.Floor, 1)
	}
	return elector.Answer{Outcome: elector.Wait}, nil // not for long: the caller asks for the lock next
}

// ballot holds the masters' answers to an acquire.
type ballot struct {
	won, held, wait []reply[elector.Answer]
	failed          []failure
	silent          int
	doubtful        []*lane // that have granted it, or may have, or still will
}

func (b *ballot) answered() int { return len(b.won) + len(b.held) + len(b.wait) }

// epoch is the highest epoch in the answers.
func (b *ballot) epoch() int64 {
	var highest int64
	for _, answers := range [][]reply[elector.Answer]{b.won, b.held, b.wait} {
		for _, r := range answers {
			highest = max(highest, r.value.Epoch)
		}
	}
	return highest
}

// freeFor is the shortest FreeFor of the masters that granted it: within that time no owner can have won or renewed at a majority.
func (b *ballot) freeFor() time.Duration {
	shortest := b.won[0].value.FreeFor
	for _, r := range b.won {
		shortest = min(shortest, r.value.FreeFor)
	}
	return shortest
}

// missing are the lanes that have not granted it.
func (b *ballot) missing(lanes []*lane) (missing []*lane) {
	for _, ln := range lanes {
		if !slices.ContainsFunc(b.won, func(r reply[elector.Answer]) bool { return r.lane == ln }) {
			missing = append(missing, ln)
		}
	}
	return missing
}

// vote asks all masters. It returns soon after a majority has granted the lock or names another holder, or when all have had their time.
func (l *Lock) vote(ctx context.Context, c elector.Candidate) *ballot {
	replies := ask(ctx, l, l.lanes, func(ctx context.Context, lock elector.Lock) (elector.Answer, error) {
		return lock.Acquire(ctx, c)
	})
	b := &ballot{}
	free := map[*lane]bool{} // of any doubt
	began, decided := l.opts.Clock(), false
	count := func(r reply[elector.Answer]) bool {
		switch {
		case r.err != nil:
			b.failed = append(b.failed, failure{r.lane.name, r.err})
			free[r.lane] = errors.Is(r.err, elector.ErrRefused)
		case r.value.Outcome == elector.Won:
			b.won = append(b.won, r)
		case r.value.Outcome == elector.Held:
			b.held = append(b.held, r)
			free[r.lane] = true
		default:
			b.wait = append(b.wait, r)
			free[r.lane] = true
		}
		_, held := l.holder(b)
		decided = held || len(b.won) >= l.majority
		return decided
	}
	b.silent = collect(ctx, len(l.lanes), l.opts.Timeout, replies, count)
	if decided {
		// The other answers cannot change that. They still get as long again: then healthy masters need no healing and no withdrawal.
		more := max(atLeast, l.opts.Clock()-began)
		b.silent = collect(ctx, b.silent, more, replies, func(r reply[elector.Answer]) bool { count(r); return false })
	}
	if c.Observer {
		return b
	}
	for _, ln := range l.lanes {
		if !free[ln] {
			b.doubtful = append(b.doubtful, ln)
		}
	}
	return b
}

// again is the epoch of a term that was won before and goes on: a majority has had it since, or they would know of a higher one. Another
// master may have granted the term when its epoch was written back already, under a higher one of its own.
func (l *Lock) again(owner string, given []reply[elector.Answer]) (epoch int64, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leads != owner {
		return 0, false
	}
	same := 0
	for _, r := range given {
		if r.value.Epoch == l.epoch {
			same++
		}
	}
	return l.epoch, same >= l.majority
}

// record makes the epoch of a term the highest of those that the masters gave it,
// and writes it back to a majority before it is used. See the package comment.
func (l *Lock) record(ctx context.Context, owner string, given []reply[elector.Answer]) (int64, error) {
	var epoch int64
	for _, r := range given {
		epoch = max(epoch, r.value.Epoch)
	}
	var below []*lane
	for _, r := range given {
		if r.value.Epoch < epoch {
			below = append(below, r.lane)
		}
	}
	good, failed, silent := every(ctx, l, below, func(ctx context.Context, lock elector.Lock) (int64, error) {
		return lock.Raise(ctx, owner, epoch-1)
	})
	if has := len(given) - len(below) + len(good); has < l.majority {
		return 0, l.tooFew(fmt.Sprintf("write epoch %d back", epoch), has, silent, failed)
	}
	return epoch, nil
}

// withdraw gives back the grants of an attempt that failed, also those that may still come. It waits for the masters that have granted
// it, so that others find them free. A request so late that it arrives after its own withdrawal takes the lock of that master for no
// term: its lease ends that.
func (l *Lock) withdraw(ctx context.Context, owner string, b *ballot) {
	if len(b.doubtful) == 0 {
		return
	}
	l.spend(owner)
	granted := map[*lane]bool{}
	for _, r := range b.won {
		granted[r.lane] = true
	}
	replies := ask(ctx, l, b.doubtful, func(ctx context.Context, lock elector.Lock) (struct{}, error) {
		return struct{}{}, lock.Release(ctx, owner,
			elector.Handover{Event: string(elector.EventWithdrawn), Reason: "no majority of the masters granted it"})
	})
	left := len(granted)
	if left == 0 {
		return
	}
	collect(ctx, len(b.doubtful), l.opts.Timeout, replies, func(r reply[struct{}]) bool {
		if granted[r.lane] {
			left--
		}
		return left == 0
	})
}

// atLeast is the least time for a round in a network without latency.
const atLeast = 5 * time.Millisecond
