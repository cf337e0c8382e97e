package elector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"baton/internal/heartbeat"
)

// Why a leader's context ends: context.Cause of the ctx that a LeadFunc gets.
var (
	ErrSteppedDown  = errors.New("stepped down")
	ErrLeaseLost    = errors.New("lease lost")
	ErrTrustClosed  = errors.New("trust window closed")
	ErrShuttingDown = errors.New("shutting down")
)

// ErrDone is the cause of the ctx of [Elector.Run] if the process goes on, but the work that needed the lock is finished. The history
// then says that.
var ErrDone = errors.New("its work is done")

// LeadFunc does the leader's work. It starts nothing once ctx has ended, and
// returns only when everything that it started has ended; the lock is kept, and
// renewed, until then. If it returns while ctx is alive, the term ends.
type LeadFunc func(ctx context.Context, t *Term) error

// Abdication is the error by which a LeadFunc gives the lead up for a while: it cannot do its work on this node, and another node perhaps
// can.
type Abdication struct {
	Reason   string
	CoolDown time.Duration   // how long this node then leaves the lock to others
	Over     <-chan struct{} // if set, it ends the cool-down early by being closed
}

func (a *Abdication) Error() string { return "abdicated: " + a.Reason }

// Config configures an elector beyond its lock and its work.
type Config struct {
	NodeID string
	Timing heartbeat.Timing
	// PollInterval is the longest that a standby waits between two attempts.
	PollInterval time.Duration
	// NewOwner makes the UUID of the next term.
	NewOwner func() (string, error)
	// Die ends the process at once. It is called when the work has neither returned nor
	// settled ([Term.Settle]) by the hard stop: a leader that cannot stop must die.
	Die func(reason string)
	// Floor is the highest epoch of this lock that the caller has learnt elsewhere; zero without one. See [Candidate].
	Floor int64
	// Lease is that of the last term of this lock that the caller has learnt elsewhere; zero without one.
	Lease time.Duration
	// Observer reports whether this node does not lead for now. It still follows the election. The elector calls it before every attempt,
	// so it must return at once. Nil: the node may lead.
	Observer func() bool
	// HintSpread is how far apart nodes with the same hint ask, at random. Where a lock is on several stores, rivals that ask at once
	// divide the stores among themselves.
	HintSpread time.Duration
	// AcquireDelay is how long to leave a free lock to others before asking for it; at most 500 ms count. A node that leads more than its
	// share spreads the work by it. The elector calls it before every attempt, so it must return at once. It may be nil.
	AcquireDelay func() time.Duration
	// Beat, if several electors share one, lets them renew at the same moments. It
	// may be nil.
	Beat *heartbeat.Beat
	// Hints may be nil: they only make things faster.
	Hints <-chan Hint
	// Hinted reports whether hints are being received: a standby then polls more rarely. It may be nil.
	Hinted func() bool
	// Observe may be nil.
	Observe func(Event)
	// Clock is heartbeat.Boottime unless set.
	Clock heartbeat.Clock
}

// Elector campaigns for a lock, leads while it holds it, and campaigns again.
type Elector struct {
	lock Lock
	lead LeadFunc
	cfg  Config

	kick     chan struct{} // renew now
	floor    int64         // the highest epoch this process has seen
	lease    lastLease     // the lease that a leader may still trust after the store has forgotten it
	coolDown coolDown      // in which others go first
	since    freeSince     // since when the lock is free; only the campaign uses it

	mu          sync.Mutex
	storeDown   error // the store's trouble, nil while it answers
	reported    error // the trouble that was reported last, and when
	reportedAt  heartbeat.Instant
	leading     *Term
	held        bool              // by another client
	holder      string            // the node that holds the lock; "" while it is unknown, or a foreign client does
	holderEpoch int64             // of its term; 0 while unknown
	waiting     string            // why no node may take the free lock; "" if there is no such reason
	waitCode    Code              // the code of that reason
	progress    heartbeat.Instant // when a loop last went round, or will after a wait
}

// New checks the configuration. It starts nothing.
func New(lock Lock, lead LeadFunc, cfg Config) (*Elector, error) {
	if lock == nil || lead == nil || cfg.NewOwner == nil || cfg.Die == nil {
		return nil, errors.New("elector: a lock, a LeadFunc, NewOwner and Die are required")
	}
	if err := cfg.Timing.Validate(); err != nil {
		return nil, fmt.Errorf("elector: %w", err)
	}
	if cfg.PollInterval <= 0 {
		return nil, fmt.Errorf("elector: poll_interval is %v; it must be positive", cfg.PollInterval)
	}
	if cfg.Observe == nil {
		cfg.Observe = func(Event) {}
	}
	if cfg.Observer == nil {
		cfg.Observer = func() bool { return false }
	}
	if cfg.Hinted == nil {
		cfg.Hinted = func() bool { return false }
	}
	if cfg.Clock == nil {
		cfg.Clock = heartbeat.Boottime
	}
	return &Elector{
		lock: lock, lead: lead, cfg: cfg, kick: make(chan struct{}, 1),
		floor: cfg.Floor, lease: lastLease{length: cfg.Lease}, progress: cfg.Clock(),
	}, nil
}

// Run campaigns and leads until ctx ends, and returns when the work has returned and the lock is released. The error is nil, or why
// NewOwner failed.
func (e *Elector) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		term, err := e.campaign(ctx)
		if err != nil {
			return err
		}
		if term == nil {
			return nil
		}
		e.coolDown = e.runTerm(ctx, term)
	}
	return nil
}

// Leading returns the running term, or nil on a standby.
func (e *Elector) Leading() *Term {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leading
}

// Holder returns the node that holds the lock as far as this node knows; "" if this node knows none, or the holder is a foreign client.
func (e *Elector) Holder() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.holder
}

// Held reports whether another client holds the lock, as far as this node knows: a node, or a foreign client.
func (e *Elector) Held() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.held
}

// Waiting returns why no node may take the free lock yet, for programs and in words; both are "" if there is no such reason.
func (e *Elector) Waiting() (Code, string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.waitCode, e.waiting
}

// StoreTrouble returns why the store does not answer, or nil.
func (e *Elector) StoreTrouble() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.storeDown
}

// SinceProgress is how long ago the election last made a step, or should have. A
// store that is away does not stop progress: failing and waiting is a step too.
func (e *Elector) SinceProgress() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return max(0, e.cfg.Clock().Sub(e.progress))
}

// waits notes that the next step is due after d.
func (e *Elector) waits(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.progress = e.cfg.Clock().Add(d)
}

// anotherTrouble is how long after a report trouble of another kind is not reported yet: a store that starts up refuses for a moment.
const anotherTrouble = 5 * time.Second

// contact notes whether the store answered, and reports once when that changes. A refusal is an answer, but not one that helps: an
// operator who has read of the silence of the store must also learn, if it lasts, that it wants another password.
func (e *Elector) contact(err error) {
	if errors.Is(err, ErrLost) {
		err = nil
	}
	e.mu.Lock()
	now := e.cfg.Clock()
	e.progress = now
	before := e.storeDown
	e.storeDown = err
	report := err != nil && (before == nil ||
		errors.Is(err, ErrRefused) != errors.Is(e.reported, ErrRefused) && now.Sub(e.reportedAt) > anotherTrouble)
	if report {
		e.reported, e.reportedAt = err, now
	}
	e.mu.Unlock()
	switch {
	case err == nil && before != nil:
		e.cfg.Observe(Event{Kind: EventStoreBack})
	case report:
		e.cfg.Observe(Event{Kind: EventStoreLost, Err: err})
	}
}

func (e *Elector) setRole(leading *Term, holder string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leading, e.held, e.holder, e.holderEpoch, e.waiting, e.waitCode = leading, false, holder, 0, "", ""
}

// pause waits for d, or until ctx ends, a hint other than HintControl comes, or a cool-down ends. It reports whether a hint or the end of
// a cool-down cut it short.
func (e *Elector) pause(ctx context.Context, d time.Duration) (hinted bool) {
	if d <= 0 {
		return false
	}
	e.waits(d)
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return false
		case <-e.coolDown.over:
			return true
		case h := <-e.cfg.Hints:
			if h != HintControl {
				return true
			}
		}
	}
}
