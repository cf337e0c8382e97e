package quorum

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"baton/internal/elector"
)

// Options of a lock made of locks.
type Options struct {
	// TTL is the lease of each of the locks.
	TTL time.Duration
	// Margin is the least rest of the lease when the lock counts as won. Default: 1 % of the TTL and 2 ms, for clocks of different
	// speeds.
	Margin time.Duration
	// Timeout bounds a request to one master. Default: 5 % of the TTL, at least 50 ms.
	Timeout time.Duration
	// NewOwner makes a UUID for a candidate whose own one is spent. Required.
	NewOwner func() (string, error)
	// Names of the masters, for messages. Default: master 1, master 2, ...
	Names []string
	// Clock never steps. Default: Go's monotonic clock.
	Clock func() time.Duration
}

// Lock is one lock made of N: the holder of a majority of them holds it. It implements elector.Lock, for one candidate at a time.
type Lock struct {
	lanes    []*lane
	majority int
	opts     Options
	under    sync.WaitGroup // requests under way

	mu    sync.Mutex
	asked string // the candidate's owner
	used  string // the owner in the requests to the masters; another one once asked was spent
	// spent: a release of used is under way, or may be. It could take away a later grant that counts, so used may win no more.
	spent  bool
	splits int           // attempts in a row that found no majority for any owner
	leads  string        // the owner whose term is renewed: it takes lost locks again
	epoch  int64         // of that term
	order  elector.Order // from answers after its renewal was decided
}

var _ elector.Lock = (*Lock)(nil)

// New makes one lock of N, each in a store of its own that knows nothing of the others. It sends no request.
func New(locks []elector.Lock, o Options) (*Lock, error) {
	switch {
	case len(locks) == 0:
		return nil, errors.New("quorum: it takes at least one lock, and three to survive the loss of one")
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
		l.lanes = append(l.lanes, &lane{lock: lock, name: name})
	}
	return l, nil
}

// candidate returns the owner for the requests of a candidate that campaigns as asked.
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

// alias is the owner in use for a candidate, if that is another one.
func (l *Lock) alias(owner string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if owner == l.asked {
		return l.used
	}
	return owner
}

// term notes the term that is being renewed, and its epoch.
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

// spend notes that releases of owner may arrive from now on. It reports whether
// this is the first of them.
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

// confirmed notes that the only release of owner has arrived everywhere.
func (l *Lock) confirmed(owner string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.used == owner {
		l.spent = false
	}
}

// Settle waits until no request is under way, or ctx ends: a slow master should still get a release before the process ends. The caller
// must not use the lock meanwhile.
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

// tooFew is the error of a request that has not reached a majority. It is ErrLost if so many masters have lost the lock that no majority
// can have it, and ErrRefused if a majority refused.
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
	err := fmt.Errorf("%s: %d of %d masters did it, and it takes %d%s", what, good, len(l.lanes), l.majority, text)
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

// every asks all lanes and waits for their answers, at most for the timeout of a
// request. It returns the answers, the errors and how many have not answered.
func every[T any](ctx context.Context, l *Lock, lanes []*lane,
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
