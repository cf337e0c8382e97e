package work

import (
	"context"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"baton/internal/job"
	"baton/internal/redisledger"
)

const (
	// clockStep is the least change of the correction that counts: a slow answer is dated no better than that.
	clockStep = time.Second
	// clockEvery is how often the clocks are compared while they agree.
	clockEvery = 30 * time.Second
	// clockSoon is how often they are compared while they differ. The clock that was wrong may be set right at any moment. Then slots that
	// come by it would wait, or come too early.
	clockSoon = time.Second
)

// Clock is the clock of slots: this host's. If that is wrong, which means far from the ledger's, Clock is the ledger's: the ledger claims
// slots by its own clock, and a host whose clock is off by an hour would claim none, or those of an hour ago.
type Clock struct {
	log    *zap.Logger
	tell   func(ahead time.Duration)
	behind atomic.Int64  // added to the host's clock
	set    chan struct{} // tells the jobs that behind has changed
	doubts chan chan<- bool
	over   chan struct{} // closed once the clocks are compared no more
	asked  chan struct{} // closed once the ledger has answered, or has not in time
}

// NewClock uses the host's clock until the first comparison. It calls tell, if set, when this host's clock has become wrong or right.
func NewClock(log *zap.Logger, tell func(ahead time.Duration)) *Clock {
	return &Clock{log: log, tell: tell, set: make(chan struct{}, 1), doubts: make(chan chan<- bool),
		over: make(chan struct{}), asked: make(chan struct{})}
}

// Now is the present time for slots.
func (c *Clock) Now() time.Time { return time.Now().Round(0).Add(time.Duration(c.behind.Load())) }

// WasSet receives after each change of the difference between the clocks.
func (c *Clock) WasSet() <-chan struct{} { return c.set }

// Follow compares the clocks until ctx ends.
func (c *Clock) Follow(ctx context.Context, ledger *redisledger.Ledger, within time.Duration) {
	defer close(c.over)
	c.compare(ctx, ledger, within)
	close(c.asked)
	for {
		every := clockEvery
		if c.behind.Load() != 0 {
			every = clockSoon
		}
		var doubt chan<- bool
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		case doubt = <-c.doubts:
		}
		right := c.compare(ctx, ledger, within)
		if doubt != nil {
			doubt <- right
		}
	}
}

// Compare compares the clocks now, and reports whether Redis answered: a slot waits that seems to be in the future.
func (c *Clock) Compare() bool {
	done := make(chan bool, 1)
	select {
	case c.doubts <- done:
		return <-done
	case <-c.over:
		return false
	}
}

// compare leaves the clock as it is if Redis does not answer soon.
func (c *Clock) compare(ctx context.Context, ledger *redisledger.Ledger, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	sent := time.Now()
	theirs, err := ledger.Now(ctx)
	took := time.Since(sent)
	if err != nil || took > clockStep {
		return false
	}
	c.heard(theirs.Sub(sent.Add(took / 2)))
	return true
}

// heard notes how far this host's clock is behind the ledger's.
func (c *Clock) heard(behind time.Duration) {
	ahead, before := -behind, time.Duration(c.behind.Load())
	if behind.Abs() <= job.WrongClock {
		behind = 0
	}
	if (behind - before).Abs() < clockStep {
		return
	}
	c.behind.Store(int64(behind))
	if c.tell != nil {
		c.tell(ahead)
	}
	select {
	case c.set <- struct{}{}:
	default: // they have not looked since the last change
	}
	if behind == 0 {
		c.log.Info("this host's clock is right again: slots come by it")
		return
	}
	how := "behind"
	if behind < 0 {
		how = "ahead of"
	}
	c.log.Warn("this host's clock is far "+how+" that of redis: slots come by the clock of redis until they agree; "+
		"check the host's time synchronisation",
		zap.Duration("by", behind.Abs()))
}

// Settled waits until the clocks were compared for the first time.
func (c *Clock) Settled(ctx context.Context) {
	select {
	case <-c.asked:
	case <-ctx.Done():
	}
}
