package quorum

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"baton/internal/elector"
)

// Options are the settings of a [Lock], which is made of several locks.
type Options struct {
	// TTL is the length of the lease at each master.
	TTL time.Duration
	// Margin is the minimum time that must be left of the lease, so that the lock counts as won. Default: 1 % of the TTL plus 2 ms,
	// because clocks run at different speeds.
	Margin time.Duration
	// Timeout limits a request to one master. Default: 5 % of the TTL, at least 50 ms.
	Timeout time.Duration
	// NewOwner makes a UUID for a candidate whose own UUID is spent. Required.
	NewOwner func() (string, error)
	// Names are the names of the masters in messages. Default: master 1, master 2, ...
	Names []string
	// Clock reads a clock that never steps. Default: Go's monotonic clock.
	Clock func() time.Duration
}

// Lock is one lock made of N locks: the holder of a majority of the N locks holds the one lock. It implements elector.Lock, for one
// candidate at a time.
type Lock struct {
	lanes    []*masterQueue
	majority int
	opts     Options
	under    sync.WaitGroup // requests in progress

	mu    sync.Mutex
	asked string // the candidate's owner
	used  string // the owner in the requests to the masters; it differs from asked after asked was spent
	// spent means that a release of the owner in the field used is in progress, or may be in progress. That release could delete the
	// lock after this owner had won it again, so this owner must not win again.
	spent  bool
	splits int           // attempts in a row that found no majority for any owner
	leads  string        // the owner whose term is being renewed: heal takes lost locks again for this owner
	epoch  int64         // the epoch of that term
	order  elector.Order // an order that came in answers after its renewal was decided
}

var _ elector.Lock = (*Lock)(nil)

// New makes one lock of N locks. Each lock is in its own store, which knows nothing of the other stores. New sends no request.
func New(locks []elector.Lock, o Options) (*Lock, error) {
	switch {
	case len(locks) == 0:
		return nil, errors.New("quorum: at least one lock is needed, and three to survive the loss of one")
	case o.TTL <= 0 || o.NewOwner == nil:
		return nil, errors.New("quorum: a ttl and NewOwner are required")
	case o.Names != nil && len(o.Names) != len(locks):
		return nil, fmt.Errorf("quorum: %d names for %d locks", len(o.Names), len(locks))
	}
	if o.Margin == 0 {
		o.Margin = o.TTL/100 + 2*time.Millisecond
	}
	if o.Timeout == 0 {
		o.Timeout = max(50*time.Millisecond, o.TTL/20)
	}
	if o.Clock == nil {
		start := time.Now()
		o.Clock = func() time.Duration { return time.Since(start) }
	}
	l := &Lock{majority: len(locks)/2 + 1, opts: o}
	for i, lock := range locks {
		name := fmt.Sprintf("master %d", i+1)
		if o.Names != nil {
			name = o.Names[i]
		}
		l.lanes = append(l.lanes, &masterQueue{lock: lock, name: name})
	}
	return l, nil
}

// candidate returns the owner that a candidate uses in its requests to the masters. The argument asked is the candidate's own owner.
// The result is a new owner if the last owner was spent (see Lock.spent).
func (l *Lock) candidate(asked string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if asked != l.asked {
		l.asked, l.used, l.spent = asked, asked, false
	}
	if l.spent {
		fresh, err := l.opts.NewOwner()
		if err != nil {
			return "", err
		}
		l.used, l.spent = fresh, false
	}
	return l.used, nil
}

// alias returns the owner that a candidate uses in its requests to the masters. It may differ from the argument owner, which is the
// candidate's own owner.
func (l *Lock) alias(owner string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if owner == l.asked {
		return l.used
	}
	return owner
}

// term records the owner and the epoch of the term that is being renewed.
func (l *Lock) term(owner string, epoch int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leads != owner {
		l.leads, l.order = owner, elector.Order{}
	}
	l.epoch = epoch
}

func (l *Lock) isTerm(owner string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leads == owner
}

// spend records that requests to release the lock of this owner may arrive at the masters from now on. It reports whether this is
// the first such call.
func (l *Lock) spend(owner string) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leads == owner {
		l.leads, l.order = "", elector.Order{}
	}
	if l.used != owner {
		return false
	}
	first, l.spent = !l.spent, true
	return first
}

// confirmed records that all masters have received the only request to release the lock of this owner.
func (l *Lock) confirmed(owner string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.used == owner {
		l.spent = false
	}
}

// Settle waits until no request is in progress, or until ctx ends. So a slow master still gets a request to release the lock before
// the process ends. The caller must not use the lock while Settle waits.
func (l *Lock) Settle(ctx context.Context) {
	settled := make(chan struct{})
	go func() {
		l.under.Wait()
		close(settled)
	}()
	select {
	case <-settled:
	case <-ctx.Done():
	}
}

// tooFew returns the error of a request that has not reached a majority. The error is ErrLost if the masters that have lost the lock
// rule out a majority, and ErrRefused if a majority of the masters refused the request.
func (l *Lock) tooFew(what string, good, silent int, failed []failure) error {
	text, refused, lost := "", 0, 0
	for _, f := range failed {
		text += fmt.Sprintf("; %s: %v", f.name, f.err)
		if errors.Is(f.err, elector.ErrRefused) {
			refused++
		}
		if errors.Is(f.err, elector.ErrLost) {
			lost++
		}
	}
	if silent > 0 {
		text += fmt.Sprintf("; %d have not answered within %v", silent, l.opts.Timeout)
	}
	err := fmt.Errorf("%s: %d of %d masters succeeded, and %d are needed%s", what, good, len(l.lanes), l.majority, text)
	switch {
	case lost > len(l.lanes)-l.majority:
		return fmt.Errorf("%w: %w", elector.ErrLost, err)
	case refused >= l.majority:
		return fmt.Errorf("%w: %w", elector.ErrRefused, err)
	}
	return err
}

// failure is a master's error.
type failure struct {
	name string
	err  error
}

// every sends a request to the masters of all lanes. It waits for their answers at most for the timeout of a request. It returns the
// answers, the errors and the number of masters that have not answered.
func every[T any](ctx context.Context, l *Lock, lanes []*masterQueue,
	request func(context.Context, elector.Lock) (T, error),
) (good []reply[T], failed []failure, silent int) {
	replies := ask(ctx, l, lanes, request)
	silent = collect(ctx, len(lanes), l.opts.Timeout, replies, func(r reply[T]) bool {
		if r.err != nil {
			failed = append(failed, failure{r.lane.name, r.err})
		} else {
			good = append(good, r)
		}
		return false
	})
	return good, failed, silent
}
