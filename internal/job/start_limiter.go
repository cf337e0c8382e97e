package job

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// StartLimiter limits how many starts happen at the same time when many starts are due at the same moment. A thousand simultaneous starts
// would starve the renewal of the lease on a busy host.
type StartLimiter chan struct{}

// NewStartLimiter returns a StartLimiter. How many starts it allows at the same time depends on the number of the host's processors.
func NewStartLimiter() StartLimiter { return make(StartLimiter, max(4, 2*runtime.GOMAXPROCS(0))) }

// Acquire waits for a turn, and then waits while the function hold returns true. It returns an error, and keeps no turn, if ctx ends first
// or tooLate fires. tooLate may be nil.
func (t StartLimiter) Acquire(ctx context.Context, tooLate <-chan time.Time, hold func() bool) error {
	select {
	case t <- struct{}{}: // the turn is taken even if tooLate fires at this moment
	default:
		select {
		case t <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		case <-tooLate:
			if hold() {
				return ErrHeldBack
			}
			return errBehind
		}
	}
	for hold() {
		select {
		case <-time.After(holdPoll):
		case <-ctx.Done():
			t.Release()
			return ctx.Err()
		case <-tooLate:
			t.Release()
			return ErrHeldBack
		}
	}
	if ctx.Err() != nil {
		t.Release()
		return ctx.Err()
	}
	return nil
}

// Release frees a turn.
func (t StartLimiter) Release() { <-t }

// longestStart limits how long a slow start may delay other starts. A start is slow, for example, if the program's file is on a disk that
// hangs.
const longestStart = 5 * time.Second

// holdPoll is the pause between two calls of the function hold.
const holdPoll = 10 * time.Millisecond

// These errors say why a slot was dropped in favour of the next slot before it could be claimed.
var (
	errBehind = errors.New("too many runs were starting at the same time")
	// ErrHeldBack means that Config.Hold or HoldStarts let no run begin for the whole time.
	ErrHeldBack = errors.New("the renewal of the lease was overdue and had priority, or the lock was being handed over")
)

func late(err error) bool { return errors.Is(err, errBehind) || errors.Is(err, ErrHeldBack) }

// awaitTurn waits until the run may request its claim. Waiting runs are unclaimed, so that they belong to the next leader after a loss of
// the lock.
func (x *execution) awaitTurn() error {
	f, s := x.f, x.s
	var tooLate <-chan time.Time
	if !f.giveUp.IsZero() {
		timer := time.NewTimer(f.giveUp.Sub(s.now()))
		defer timer.Stop()
		tooLate = timer.C
	}
	if err := x.limiter.Acquire(x.asks, tooLate, s.HoldsStarts); err != nil {
		return err
	}
	x.acquired.Store(true)
	f.asked.Store(true)
	return nil
}

// leave frees the run's turn in the StartLimiter. Only its first call has an effect.
func (x *execution) leave() {
	if x.acquired.Swap(false) {
		x.limiter.Release()
	}
}

type begunKey struct{}

func withBegun(ctx context.Context, begun func()) context.Context {
	return context.WithValue(ctx, begunKey{}, begun)
}

// Begun reports that the process of a run has started, so that another process may start. The work of jobs with Spawns calls it with
// the context of its run.
func Begun(ctx context.Context) {
	if begun, ok := ctx.Value(begunKey{}).(func()); ok {
		begun()
	}
}
