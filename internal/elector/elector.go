package elector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"baton/internal/heartbeat"
)

// These are the causes that context.Cause returns for the ctx of a LeadFunc when that ctx has ended.
var (
	ErrSteppedDown  = errors.New("stepped down")
	ErrLeaseLost    = errors.New("lease lost")
	ErrTrustClosed  = errors.New("trust window closed")
	ErrShuttingDown = errors.New("shutting down")
)

// ErrDone is the cause with which a caller ends the ctx of [Elector.Run] when the work that needed the lock is finished, while the process
// continues. The event history then shows this cause.
var ErrDone = errors.New("its work is done")

// LeadFunc does the leader's work. It starts nothing after ctx has ended, and returns only when everything that it started has ended.
// The lock is kept and renewed until LeadFunc returns. If it returns while ctx is alive, the term ends.
type LeadFunc func(ctx context.Context, t *Term) error

// Abdication is an error that a LeadFunc returns to give up the lead for a while. The LeadFunc cannot do its work on this node, but perhaps
// another node can.
type Abdication struct {
	Reason   string
	CoolDown time.Duration   // how long this node leaves the lock to others after its term
	Over     <-chan struct{} // if set, closing this channel ends the cool-down early
}

func (a *Abdication) Error() string { return "abdicated: " + a.Reason }

// Config holds the settings of an elector, except its lock and its work.
type Config struct {
	NodeID string
	Timing heartbeat.Timing
	// PollInterval is the maximum time between two attempts of a standby.
	PollInterval time.Duration
	// NewOwner makes the UUID of the next term.
	NewOwner func() (string, error)
	// Die ends the process immediately. It is called when work is still running at the hard stop, because a leader that cannot stop must
	// die.
	Die func(reason string)
	// Counts means that the LeadFunc calls [Term.Begin] and [Term.End] around all work that can change something. The term is idle while no
	// such work is in progress. If Counts is false, the whole LeadFunc counts as work.
	Counts bool
	// Floor is the highest epoch of this lock that the caller has learnt elsewhere, or zero. See [Candidate].
	Floor int64
	// Lease is the lease of the last term of this lock that the caller has learnt elsewhere, or zero.
	Lease time.Duration
	// Observer reports whether this node must not lead for now. The node still follows the election. The elector calls it before every
	// attempt, so it must return immediately. If Observer is nil, the node may lead.
	Observer func() bool
	// HintSpread limits the random pause between a hint and the attempt that it causes. It is for a lock on several stores: if all nodes
	// that received the hint ask at the same moment, each of them may win some stores, and none a majority.
	HintSpread time.Duration
	// AcquireDelay returns how long this node leaves a free lock to other nodes before it asks for the lock. A time of more than 500 ms
	// counts as 500 ms. With AcquireDelay a node that leads more than its share of the locks spreads the work. The elector calls it before
	// every attempt, so it must return immediately. It may be nil.
	AcquireDelay func() time.Duration
	// Beat makes several electors that share it renew at the same moments. It may be nil.
	Beat *heartbeat.Beat
	// Hints may be nil, because hints only make the election faster.
	Hints <-chan Hint
	// Hinted reports whether hints are being received. While they are, a standby polls less often. Hinted may be nil.
	Hinted func() bool
	// Observe may be nil.
	Observe func(Event)
	// Clock is heartbeat.Boottime unless set.
	Clock heartbeat.Clock
}

// Elector campaigns for a lock and leads while it holds the lock. When it has lost or released the lock, it campaigns again.
type Elector struct {
	lock Lock
	lead LeadFunc
	cfg  Config

	kick     chan struct{} // renew now
	floor    int64         // the highest epoch this process has seen
	lease    lastLease     // the lease that a leader may still trust after the store has forgotten it
	coolDown coolDown      // the time in which others go first
	since    freeSince     // since when the lock is free; only the campaign uses it

	mu          sync.Mutex
	storeDown   error // the store's error, nil while the store answers
	reported    error // the error that was reported last, and the time of the report
	reportedAt  heartbeat.Instant
	leading     *Term
	held        bool              // another client holds the lock
	holder      string            // the node that holds the lock; "" while it is unknown, or a foreign client does
	holderEpoch int64             // the epoch of the holder's term; 0 while unknown
	waiting     string            // why no node may take the free lock; "" if there is no such reason
	waitCode    Code              // the code of that reason
	progress    heartbeat.Instant // when a loop last made a step, or will after a wait
}

// New returns an Elector, or an error if the configuration is wrong. It starts nothing.
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

// Run campaigns and leads until ctx ends. It returns when the work has returned and the lock is released. Its error is nil, or the error of
// the function NewOwner.
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

// Leading returns the term in which this node leads now, or nil if this node is a standby.
func (e *Elector) Leading() *Term {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leading
}

// Holder returns the node that holds the lock, as far as this node knows. It returns "" if this node knows no holder, or if the holder is a
// foreign client, which is not a node.
func (e *Elector) Holder() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.holder
}

// Held reports whether, as far as this node knows, another client holds the lock. This client may be a node or a foreign client.
func (e *Elector) Held() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.held
}

// Waiting returns the reason why no node may take the free lock yet: as a code for programs, and as a text for people. The code and the
// text are "" if there is no such reason.
func (e *Elector) Waiting() (Code, string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.waitCode, e.waiting
}

// StoreTrouble returns the error that explains why the store of the lock is unavailable. It returns nil if the store is available.
func (e *Elector) StoreTrouble() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.storeDown
}

// SinceProgress returns how long ago the loop of the election last made a step, or should have made one. If the store does not answer, the
// loop still makes progress, because failed attempts and waits also count as steps.
func (e *Elector) SinceProgress() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return max(0, e.cfg.Clock().Sub(e.progress))
}

// waits records that the next step of the loop is due after d.
func (e *Elector) waits(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.progress = e.cfg.Clock().Add(d)
}

// anotherTrouble is the minimum time between a report of trouble with the store and the report of another kind of trouble. It is needed
// because a store that starts up refuses requests for a moment.
const anotherTrouble = 5 * time.Second

// contact records whether the store answered, and reports each change once. If the store refuses the request, the store has answered, but
// the lock is still unavailable. So if the store first does not answer and then keeps refusing, for example because of a wrong password,
// contact also reports the refusal.
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

// pause waits for d. It ends early if ctx ends, if a hint other than HintControl comes, or if a cool-down ends. It reports whether a hint
// or the end of a cool-down ended the pause early.
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
