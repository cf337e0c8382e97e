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

// operation is a call of the lock and the result of the call.
type operation struct {
	node    int
	op      wire.Op
	owner   string
	outcome wire.Outcome
	epoch   int64 // the epoch that was won, or the raised epoch
	meddles bool
	call    int64 // moments of CLOCK_BOOTTIME, in ns
	ret     int64
}

// never is the end of an operation that may still be applied later.
const never = math.MaxInt64

// matters reports whether an operation can contradict the model, see the package comment.
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

// state is the state of the lock.
type state struct {
	owner   string // "" if no owner holds the lock
	epoch   int64  // of the holder's term
	highest int64  // of all terms
	since   int64  // the earliest moment at which the lease was granted
	now     int64  // the earliest moment of the last operation
}

// after returns the state after the operation o, and whether o is legal. ttl is the minimum time that a lease lasts.
func (l state) after(o operation, ttl time.Duration) (state, bool) {
	l.now = max(l.now, o.call)
	switch o.op {
	case wire.Acquire:
		if l.owner == o.owner && l.epoch == o.epoch {
			break // the owner has asked again, which renews the lease
		}
		if o.epoch <= l.highest {
			return l, false
		}
		if l.owner != "" {
			l.now = max(l.now, l.since+int64(ttl)) // the lease of another owner had to end first
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

// model returns the model of a leased lock for porcupine.
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

// forPorcupine returns the history in the form of porcupine. It contains the operations that matter, in the order of their calls.
func forPorcupine(all []operation) []porcupine.Operation {
	var history []porcupine.Operation
	wins := winners(all)
	for _, o := range all {
		if !o.matters() || o.op == wire.Release && wins[o.owner] == 0 {
			continue // an owner that never won has nothing to release
		}
		if o.outcome == wire.Unknown || o.outcome == "" {
			o.ret = until(o, wins[o.owner], all)
		}
		history = append(history, porcupine.Operation{ClientId: o.node, Input: o, Call: o.call, Return: o.ret})
	}
	slices.SortStableFunc(history, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	return history
}

// winners returns the owners that have won, each with the return of the last operation that shows that the owner holds the lock.
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

// until returns the end of a release of unknown outcome. The release may be applied at any time. But it has no effect after another owner
// has won, later than the last sign of the release's own owner. So an end at that time allows the same orders, and the search has fewer
// orders to check.
func until(release operation, lastSign int64, all []operation) int64 {
	end := int64(never)
	for _, o := range all {
		if o.outcome == wire.Won && o.owner != release.owner && o.call > max(lastSign, release.call) {
			end = min(end, o.ret)
		}
	}
	return end
}
