package linear

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"baton/test/linear/wire"

	"github.com/anishathalye/porcupine"
)

// operation is a call of the lock and what came of it.
type operation struct {
	node    int
	op      wire.Op
	owner   string
	outcome wire.Outcome
	epoch   int64 // that was won, or to which it was lifted
	meddles bool
	call    int64 // moments of CLOCK_BOOTTIME, in ns
	ret     int64
}

// never is when an operation ends of which nobody knows whether it has been applied yet.
const never = math.MaxInt64

// matters reports whether an operation can contradict the model: see the package's text.
func (o operation) matters() bool {
	switch o.outcome {
	case wire.Won, wire.Done:
		return true
	case wire.Unknown, "":
		return o.op == wire.Release
	}
	return false
}

func (o operation) String() string {
	text := fmt.Sprintf("%s %.8s", o.op, o.owner)
	if o.outcome == wire.Unknown || o.outcome == "" {
		return text + " ?"
	}
	text += " " + string(o.outcome)
	if o.epoch != 0 {
		text += fmt.Sprintf(" %d", o.epoch)
	}
	return text
}

// state is that of the lock.
type state struct {
	owner   string // "" when nobody holds it
	epoch   int64  // of the holder's term
	highest int64  // of all terms
	since   int64  // the earliest moment at which the lease was granted
	now     int64  // the earliest moment of the last operation
}

// after is the state that o leads to, and whether it is legal. ttl is how long a lease
// lasts at least.
func (l state) after(o operation, ttl time.Duration) (state, bool) {
	l.now = max(l.now, o.call)
	switch o.op {
	case wire.Acquire:
		if l.owner == o.owner && l.epoch == o.epoch {
			break // asked again: it renews
		}
		if o.epoch <= l.highest {
			return l, false
		}
		if l.owner != "" {
			l.now = max(l.now, l.since+int64(ttl)) // somebody's lease had to end first
		}
		l.owner, l.epoch, l.highest = o.owner, o.epoch, o.epoch
	case wire.Renew:
		if l.owner != o.owner {
			return l, false
		}
	case wire.Raise:
		if l.owner != o.owner || o.epoch < l.epoch {
			return l, false
		}
		l.epoch, l.highest = o.epoch, o.epoch
		return l, l.now <= o.ret
	case wire.Release:
		if l.owner == o.owner {
			l.owner = ""
		}
		return l, l.now <= o.ret
	}
	l.since = l.now
	return l, l.now <= o.ret
}

// model is the leased lock for porcupine.
func model(ttl time.Duration) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return state{} },
		Step: func(before, input, _ any) (bool, any) {
			next, legal := before.(state).after(input.(operation), ttl)
			return legal, next
		},
		DescribeOperation: func(input, _ any) string { return input.(operation).String() },
		DescribeState: func(s any) string {
			l := s.(state)
			if l.owner == "" {
				return fmt.Sprintf("free, last epoch %d", l.highest)
			}
			return fmt.Sprintf("%.8s, epoch %d, since %v", l.owner, l.epoch, time.Duration(l.since))
		},
	}
}

// forPorcupine is the history as porcupine takes it: what matters, in the order of calls.
func forPorcupine(all []operation) []porcupine.Operation {
	var history []porcupine.Operation
	wins := winners(all)
	for _, o := range all {
		if !o.matters() || o.op == wire.Release && wins[o.owner] == 0 {
			continue // who never won has nothing to release
		}
		if o.outcome == wire.Unknown || o.outcome == "" {
			o.ret = until(o, wins[o.owner], all)
		}
		history = append(history, porcupine.Operation{ClientId: o.node, Input: o, Call: o.call, Return: o.ret})
	}
	slices.SortStableFunc(history, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	return history
}

// winners are the owners that have won, each with the return of the last operation that
// shows it to be the holder.
func winners(all []operation) map[string]int64 {
	last := map[string]int64{}
	for _, o := range all {
		if o.outcome == wire.Won {
			last[o.owner] = max(last[o.owner], o.ret)
		}
	}
	for _, o := range all {
		if _, won := last[o.owner]; won && o.outcome == wire.Done && o.op != wire.Release {
			last[o.owner] = max(last[o.owner], o.ret)
		}
	}
	return last
}

// until is when a release of unknown outcome ends: it may be applied at any time, but has
// no effect any more once another owner has won after the last sign of its own. That it
// ends then allows the same orders, and spares the search most of them.
func until(release operation, lastSign int64, all []operation) int64 {
	end := int64(never)
	for _, o := range all {
		if o.outcome == wire.Won && o.owner != release.owner && o.call > max(lastSign, release.call) {
			end = min(end, o.ret)
		}
	}
	return end
}
