// Package locktest is the conformance suite of elector.Lock: one suite, run
// against every implementation.
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

// Bench is one lock under test.
type Bench struct {
	TTL time.Duration
	// A, B and C are three nodes' views of the same lock, called "a", "b" and "c".
	A, B, C elector.Lock
	// Flush empties the store, as FLUSHALL does.
	Flush func()
	// Sleep lets the store's time pass.
	Sleep func(time.Duration)
	// StepDown asks the current leader to step down in favour of node to.
	StepDown func(to, reason string) error
}

// T is what a case needs of a test.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

var cases = []struct {
	name string
	test func(t T, ctx context.Context, b Bench)
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

// patience is how long a case may take.
const patience = time.Minute

// RunInBubble runs the suite, each case in a bubble of package synctest: for stores whose time
// is Go's. open makes a fresh lock for each case.
func RunInBubble(t *testing.T, open func(t *testing.T) Bench) {
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

// The lease of a case on real servers is as short as the machine allows.
const shortest, longest = 400 * time.Millisecond, 400 * time.Millisecond << 5

// RunLive runs the suite on real servers, which count leases by a clock that a busy machine does not
// wait for. What a case finds wrong after it was held up for a good part of a lease is no
// fault of the lock's: it is tried again, with twice the lease, on a lock that open makes.
func RunLive(t *testing.T, open func(t *testing.T, ttl time.Duration) Bench) {
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
					t.Fatalf("held up for %v, with a lease of %v", late, ttl)
				}
				t.Logf("held up for %v, with a lease of %v, it found: %q", late, ttl, a.wrong)
			}
		})
	}
}

// attempt notes what a case finds wrong.
type attempt struct {
	*testing.T
	wrong []string
}

// errEnded ends an attempt.
var errEnded = errors.New("the attempt has found enough")

func (a *attempt) Errorf(format string, args ...any) {
	a.wrong = append(a.wrong, fmt.Sprintf(format, args...))
}

func (a *attempt) Fatalf(format string, args ...any) {
	a.Errorf(format, args...)
	panic(errEnded)
}

// run returns how much longer the case took than it meant to sleep.
func (a *attempt) run(test func(T, context.Context, Bench), b Bench) (late time.Duration) {
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
