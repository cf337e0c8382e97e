package job

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// Turns limit how many starts that are due at the same moment begin at a time. A thousand at once
// would starve the renewal of the lease on a busy host.
type Turns chan struct{}

// NewTurns returns as many turns as fit the host's number of processors.
func NewTurns() Turns { return make(Turns, max(4, 2*runtime.GOMAXPROCS(0))) }

// Take waits for a turn, and then while hold reports true. It fails without a turn if ctx ends
// first, or tooLate (may be nil) fires.
func (t Turns) Take(ctx context.Context, tooLate <-chan time.Time, hold func() bool) error {
	select {
	case t <- struct{}{}: // even if tooLate fires just now
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
			t.Leave()
			return ctx.Err()
		case <-tooLate:
			t.Leave()
			return ErrHeldBack
		}
	}
	if ctx.Err() != nil {
		t.Leave()
		return ctx.Err()
	}
	return nil
}

// Leave frees a turn.
func (t Turns) Leave() { <-t }

// longestTurn is the time after which a slow start no longer delays the others: its file may be
// on a disk that hangs.
const longestTurn = 5 * time.Second

// holdPoll is the interval at which hold is checked.
const holdPoll = 10 * time.Millisecond

// Why a slot was dropped for the next one before it could be claimed.
var (
	errBehind = errors.New("too many runs were beginning")
	// ErrHeldBack: Config.Hold let no run begin for all that time.
	ErrHeldBack = errors.New("the renewal of the lease was overdue and went first")
)

func late(err error) bool { return errors.Is(err, errBehind) || errors.Is(err, ErrHeldBack) }

// awaitTurn waits until the run may claim. Waiting runs are unclaimed: after a loss of the lock
// they are the next leader's.
func (x *execution) awaitTurn() error {
	f, s := x.f, x.s
	var tooLate <-chan time.Time
	if !f.giveUp.IsZero() {
		timer := time.NewTimer(f.giveUp.Sub(s.now()))
		defer timer.Stop()
		tooLate = timer.C
	}
	if err := x.queue.Take(x.asks, tooLate, s.cfg.Hold); err != nil {
		return err
	}
	x.turn.Store(true)
	f.asked.Store(true)
	return nil
}

// leave frees the run's turn once.
func (x *execution) leave() {
	if x.turn.Swap(false) {
		x.queue.Leave()
	}
}

type begunKey struct{}

func withBegun(ctx context.Context, begun func()) context.Context {
	return context.WithValue(ctx, begunKey{}, begun)
}

// Begun reports that the process of a run has started, so that another may. The work of jobs
// with Spawns calls it with the context of its run.
func Begun(ctx context.Context) {
	if begun, ok := ctx.Value(begunKey{}).(func()); ok {
		begun()
	}
}
