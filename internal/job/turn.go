package job

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// Turns let few of many things begin at a time that are due at the same moment. On a host that
// has little time for a thousand of them the others, and with them the renewal of the lease,
// would wait for the last.
type Turns chan struct{}

// NewTurns returns as many as a host of this size can begin at a time.
func NewTurns() Turns { return make(Turns, max(4, 2*runtime.GOMAXPROCS(0))) }

// Take waits for a turn, and then for as long as hold says to begin nothing. It fails, and there
// is no turn to leave, if ctx ends first, or tooLate fires, which may be nil.
func (t Turns) Take(ctx context.Context, tooLate <-chan time.Time, hold func() bool) error {
	select {
	case t <- struct{}{}: // even if its time is over just now
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

// Leave gives a turn to the next one.
func (t Turns) Leave() { <-t }

// longestTurn is how long a process may take to begin before others do all the same: its
// file may be on a disk that hangs.
const longestTurn = 5 * time.Second

// holdPoll is how often it is checked whether starts are still to be held back.
const holdPoll = 10 * time.Millisecond

// Why a slot gave way to the next one before it could be claimed.
var (
	errBehind = errors.New("too many runs were beginning")
	// ErrHeldBack: Config.Hold said for all that time to begin nothing.
	ErrHeldBack = errors.New("the renewal of the lease was overdue and went first")
)

func late(err error) bool { return errors.Is(err, errBehind) || errors.Is(err, ErrHeldBack) }

// awaitTurn waits until the run may begin with its claim. Runs that wait are unclaimed: if the
// lead is lost they are the next leader's.
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

// leave gives the run's turn to the next one, if it has not already.
func (x *execution) leave() {
	if x.turn.Swap(false) {
		x.queue.Leave()
	}
}

type begunKey struct{}

func withBegun(ctx context.Context, begun func()) context.Context {
	return context.WithValue(ctx, begunKey{}, begun)
}

// Begun notes that the process of a run has begun: another may. It is for the
// work of jobs that spawn, with the context that the work was given.
func Begun(ctx context.Context) {
	if begun, ok := ctx.Value(begunKey{}).(func()); ok {
		begun()
	}
}
