// Package locktest is the conformance suite of elector.Lock, which runs against every implementation.
package locktest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/elector"
)

// Harness is one lock under test.
type Harness struct {
	TTL time.Duration
	// A, B and C are the handles of the nodes "a", "b" and "c" on the same lock.
	A, B, C elector.Lock
	// Flush empties the store, as FLUSHALL does.
	Flush func()
	// Sleep lets the time of the store pass.
	Sleep func(time.Duration)
	// StepDown asks the current leader to step down in favour of the node that the argument to names.
	StepDown func(to, reason string) error
}

// T contains the methods of a test that a case needs.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

var cases = []struct {
	name string
	test func(t T, ctx context.Context, b Harness)
}{
	{"AFreeLockIsWonOnce", aFreeLockIsWonOnce},
	{"TheSameOwnerWinsAgainWithTheSameEpoch", sameOwnerWinsAgain},
	{"AskingAgainRenewsTheLease", askingAgainRenews},
	{"AnotherOwnerOfTheSameNodeIsSomebodyElse", otherOwnerOfSameNode},
	{"ALeaseExpiresUnlessRenewed", leaseExpires},
	{"WhoeverPollsHearsOfTheNextHolder", pollHearsOfNext},
	{"AWinnerHearsForHowLongTheLockWasFree", hearsHowLongFree},
	{"RenewKeepsTheLease", renewKeeps},
	{"OnlyTheOwnerRenewsAndReleases", onlyTheOwner},
	{"AnExpiredLeaseIsNotRenewed", expiredIsNotRenewed},
	{"TheEpochRisesWithEveryTerm", epochRises},
	{"TheEpochRisesAboveTheFloor", epochAboveFloor},
	{"TheEpochSurvivesAnEmptyStore", epochSurvivesFlush},
	{"HeldTellsTheEpoch", heldTellsEpoch},
	{"AnEmptiedStoreMakesNewOwnersWaitOneLease", emptiedStoreWaits},
	{"TheLeaderPutsTheLockOfAnEmptiedStoreBack", leaderPutsBack},
	{"AnEarlierOwnerPutsNothingBack", earlierPutsNothingBack},
	{"AnObserverLooksAndNeverWins", observerNeverWins},
	{"ADeferringCandidateTakesOnlyWhatIsReservedForIt", deferringTakesReserved},
	{"RaiseLiftsTheEpochOfTheOwnerOnly", raise},
	{"AHandoverReservesTheLock", handoverReserves},
	{"AnOrderReachesTheLeaderItWasMeantFor", orderReaches},
}

// patience is the time limit of a case.
const patience = time.Minute

// RunInBubble runs each case of the suite in a bubble of package synctest, for stores that use Go's clock. open makes a new lock for each
// case.
func RunInBubble(t *testing.T, open func(t *testing.T) Harness) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				c.test(t, ctx, open(t))
			})
		})
	}
}

// shortest and longest limit the lease of a case on real servers. The lease is as short as the machine allows.
const shortest, longest = 400 * time.Millisecond, 400 * time.Millisecond << 5

// RunLive runs the suite on real servers. The leases on these servers continue to run out while a busy machine pauses the test. If a case
// fails after a delay of at least a quarter of its lease, the delay may be the cause. RunLive then repeats the case with twice the lease,
// on a new lock from open.
func RunLive(t *testing.T, open func(t *testing.T, ttl time.Duration) Harness) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for ttl := shortest; ; ttl *= 2 {
				a := &attempt{T: t}
				late := a.run(c.test, open(t, ttl))
				if len(a.wrong) == 0 {
					return
				}
				if late < ttl/4 || ttl == longest {
					for _, w := range a.wrong {
						t.Error(w)
					}
					t.Fatalf("was delayed for %v, with a lease of %v", late, ttl)
				}
				t.Logf("was delayed for %v, with a lease of %v, it found: %q", late, ttl, a.wrong)
			}
		})
	}
}

// attempt is one execution of a case, and records the errors that the case finds.
type attempt struct {
	*testing.T
	wrong []string
}

// errEnded ends an attempt after a fatal error.
var errEnded = errors.New("the attempt has found enough")

func (a *attempt) Errorf(format string, args ...any) {
	a.wrong = append(a.wrong, fmt.Sprintf(format, args...))
}

func (a *attempt) Fatalf(format string, args ...any) {
	a.Errorf(format, args...)
	panic(errEnded)
}

// run runs a case, and returns how long the case took, without the time that it intended to sleep.
func (a *attempt) run(test func(T, context.Context, Harness), b Harness) (late time.Duration) {
	ctx, cancel := context.WithTimeout(a.Context(), patience)
	defer cancel()
	var slept time.Duration
	sleep := b.Sleep
	b.Sleep = func(d time.Duration) { slept += d; sleep(d) }
	began := time.Now()
	defer func() {
		late = time.Since(began) - slept
		if r := recover(); r != nil && r != any(errEnded) {
			panic(r)
		}
	}()
	test(a, ctx, b)
	return 0
}
