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

// look asks all masters whether there was an earlier term, for a candidate that knows of none. It takes no lock. A store without an
// earlier term treats the lock as new and grants it at once. But such a master may have lost its data while a leader still relies on
// this master. So the candidate asks for the lock without a Floor only if all masters answer that they know of no term.
func (l *Lock) look(ctx context.Context, c *elector.Candidate) (elector.Answer, error) {
	if deadline, ok := ctx.Deadline(); ok {
		// This question may take half of the time, because a master that hangs must leave time for the request for the lock.
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
	return elector.Answer{Outcome: elector.Wait}, nil // a short wait, because the caller asks for the lock next
}

// ballot holds the masters' answers to one request for the lock.
type ballot struct {
	won, held, wait []reply[elector.Answer]
	failed          []failure
	silent          int
	doubtful        []*masterQueue // masters that have granted the lock, or may have, or still will
}

func (b *ballot) answered() int { return len(b.won) + len(b.held) + len(b.wait) }

// epoch returns the highest epoch in the answers.
func (b *ballot) epoch() int64 {
	var highest int64
	for _, answers := range [][]reply[elector.Answer]{b.won, b.held, b.wait} {
		for _, r := range answers {
			highest = max(highest, r.value.Epoch)
		}
	}
	return highest
}

// freeFor returns the shortest FreeFor of the masters that granted the lock, that is, how long the lock was free at these masters. Within
// this time no owner can have won or renewed the lock at a majority.
func (b *ballot) freeFor() time.Duration {
	shortest := b.won[0].value.FreeFor
	for _, r := range b.won {
		shortest = min(shortest, r.value.FreeFor)
	}
	return shortest
}

// missing returns the masters, each with its queue, that have not granted the lock.
func (b *ballot) missing(lanes []*masterQueue) (missing []*masterQueue) {
	for _, ln := range lanes {
		if !slices.ContainsFunc(b.won, func(r reply[elector.Answer]) bool { return r.lane == ln }) {
			missing = append(missing, ln)
		}
	}
	return missing
}

// vote asks all masters for the lock. It returns soon after a majority has granted the lock or names another holder, or when the time
// for all requests is over.
func (l *Lock) vote(ctx context.Context, c elector.Candidate) *ballot {
	replies := ask(ctx, l, l.lanes, func(ctx context.Context, lock elector.Lock) (elector.Answer, error) {
		return lock.Acquire(ctx, c)
	})
	b := &ballot{}
	free := map[*masterQueue]bool{} // the masters that certainly have not granted the lock
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
		// The answers that are missing now cannot change the decision. But these masters get the same time again to grant the lock, because
		// healthy masters then need neither heal nor withdraw.
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

// The method again returns the epoch of the owner's term if the owner has already won, and the term has not ended. A majority has recorded
// this epoch since then; otherwise these masters would know of a higher epoch. Another master may have granted the term after the epoch was
// written back, under a higher epoch of its own.
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

// record takes the highest epoch from the masters' answers as the term's epoch, and writes it back to a majority before the term uses
// it. See the package comment.
func (l *Lock) record(ctx context.Context, owner string, given []reply[elector.Answer]) (int64, error) {
	var epoch int64
	for _, r := range given {
		epoch = max(epoch, r.value.Epoch)
	}
	var below []*masterQueue
	for _, r := range given {
		if r.value.Epoch < epoch {
			below = append(below, r.lane)
		}
	}
	good, failed, silent := every(ctx, l, below, func(ctx context.Context, lock elector.Lock) (int64, error) {
		return lock.Raise(ctx, owner, epoch-1)
	})
	if has := len(given) - len(below) + len(good); has < l.majority {
		return 0, l.tooFew(fmt.Sprintf("restore epoch %d", epoch), has, silent, failed)
	}
	return epoch, nil
}

// withdraw gives back the grants of an attempt that failed, including grants that may still come. It waits for the masters that have
// granted the lock, so that other nodes find these masters free. A request that arrives after its own withdrawal takes the lock of that
// master for no term, until that lease ends.
func (l *Lock) withdraw(ctx context.Context, owner string, b *ballot) {
	if len(b.doubtful) == 0 {
		return
	}
	l.spend(owner)
	granted := map[*masterQueue]bool{}
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

// atLeast is the minimum time that is assumed for a round of requests, even if the network has almost no latency.
const atLeast = 5 * time.Millisecond
