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
	// clockStep is the minimum change of the correction that counts, because the answer of a slow ledger is not more precise.
	clockStep = time.Second
	// clockEvery is the interval between two comparisons of the clocks while the clocks agree.
	clockEvery = 30 * time.Second
	// clockSoon is the pause between two comparisons of the clocks while they differ. The pause is short, because the wrong clock may be
	// corrected at any moment. Until the next comparison, slots would then come too late or too early.
	clockSoon = time.Second
)

// Clock is the clock that decides when a slot has come. It is this host's clock. If the host's clock differs too much from the ledger's
// clock, it is the ledger's clock. The ledger compares each claim of a slot with its own clock. So a host whose clock is off by an hour
// could claim no slot, or only the slots of an hour ago.
type Clock struct {
	log    *zap.Logger
	tell   func(ahead time.Duration)
	behind atomic.Int64  // added to the host's clock
	set    chan struct{} // receives a value when behind has changed
	doubts chan chan<- bool
	over   chan struct{} // closed when the clocks are no longer compared
	asked  chan struct{} // closed when the ledger has answered, or has not answered in time
}

// NewClock returns a Clock that uses the host's clock until the first comparison. If the function tell is not nil, Clock calls it when this
// host's clock becomes wrong or right.
func NewClock(log *zap.Logger, tell func(ahead time.Duration)) *Clock {
	return &Clock{log: log, tell: tell, set: make(chan struct{}, 1), doubts: make(chan chan<- bool),
		over: make(chan struct{}), asked: make(chan struct{})}
}

// Now returns the present time by this clock, which decides when slots have come.
func (c *Clock) Now() time.Time { return time.Now().Round(0).Add(time.Duration(c.behind.Load())) }

// WasSet returns a channel that receives a value after each change of the difference between the clocks.
func (c *Clock) WasSet() <-chan struct{} { return c.set }

// Follow compares this host's clock with the ledger's clock repeatedly until ctx ends.
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

// Compare compares the clocks immediately, because the runner of the jobs has noticed that they may differ. It reports whether Redis
// answered.
func (c *Clock) Compare() bool {
	done := make(chan bool, 1)
	select {
	case c.doubts <- done:
		return <-done
	case <-c.over:
		return false
	}
}

// compare compares this host's clock with the ledger's clock. If Redis does not answer soon, the Clock stays unchanged.
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

// heard records how far this host's clock is behind the ledger's clock.
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
	default: // the jobs have not looked since the last change
	}
	if behind == 0 {
		c.log.Info("this host's clock agrees with the clock of redis again: the schedule uses the host's clock from now on")
		return
	}
	how := "behind"
	if behind < 0 {
		how = "ahead of"
	}
	c.log.Warn("this host's clock is far "+how+" the clock of redis: the schedule uses the clock of redis until both agree; "+
		"check the host's time synchronisation",
		zap.Duration("by", behind.Abs()))
}

// Settled waits until the first comparison of the clocks is over.
func (c *Clock) Settled(ctx context.Context) {
	select {
	case <-c.asked:
	case <-ctx.Done():
	}
}
