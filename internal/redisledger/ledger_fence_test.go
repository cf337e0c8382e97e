package redisledger

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"baton/internal/job"
	"baton/internal/redislock/script"
)

// inEpoch returns a run of a term with the given owner and epoch.
func inEpoch(minute int, owner string, epoch int64) job.Run {
	r := newRun(fmt.Sprint(owner, minute), minute, owner)
	r.Term.Epoch = epoch
	return r
}

// With a quorum there is no lock in the store of the data, so a term is over when a later term has made a claim.
func TestALedgerApartFromTheLockIsFencedByTheEpoch(t *testing.T) {
	g := newRig(t)
	l := NewLedger(g.store, LedgerOptions{LockKey: "baton", ByEpoch: true})
	for _, c := range []struct {
		what string
		run  job.Run
		want error
	}{
		{"the first term", inEpoch(1, "a", 7), nil},
		{"the same term", inEpoch(2, "a", 7), nil},
		{"its epoch, under another owner", inEpoch(3, "b", 7), job.ErrNotLeader},
		{"the same term, after it was raised", inEpoch(3, "a", 9), nil},
		{"a later term", inEpoch(4, "b", 10), nil},
		{"the earlier term", inEpoch(5, "a", 9), job.ErrNotLeader},
		{"the later term, a slot that is taken", inEpoch(4, "b", 11), job.ErrSlotTaken},
		{"a number that is less as a text is", inEpoch(6, "c", 1_000_000_000_000), nil},
		{"a number that is greater only as a text", inEpoch(7, "b", 11), job.ErrNotLeader},
	} {
		r := c.run
		r.ID += c.what // a new ID, so that no claim repeats an earlier claim
		if err := l.Claim(t.Context(), r); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.what, err, c.want)
		}
	}
	err := l.Claim(t.Context(), inEpoch(8, "b", 11))
	if err == nil || !strings.Contains(err.Error(), `"{baton}:fence" has owner "c in epoch 1000000000000"`) {
		t.Errorf("%v does not say who leads", err)
	}
	// No term can have an epoch that is far ahead of the clock.
	g.Do("HSET", "{baton}:fence", "epoch", int64(9007199254740989), "owner", "x")
	if err := l.Claim(t.Context(), inEpoch(9, "c", 1_000_000_000_001)); err != nil {
		t.Errorf("after a forgery: %v", err)
	}
	// All jobs of the ledger share the fence.
	other := inEpoch(9, "b", 11)
	other.Job = "mails"
	if err := l.Claim(t.Context(), other); !errors.Is(err, job.ErrNotLeader) {
		t.Errorf("another job: %v", err)
	}
}

func TestOfTwoTermsThatClaimTheSameSlotsTheLaterWins(t *testing.T) {
	g := newRig(t)
	o := LedgerOptions{LockKey: "baton", ByEpoch: true}
	l, other := NewLedger(g.store, o), NewLedger(openStore(t, g.redis.URL()), o)
	var mu sync.Mutex
	var order []int64
	var racers sync.WaitGroup
	for i, ledger := range []*Ledger{l, other} {
		racers.Go(func() {
			for minute := range 100 {
				err := ledger.Claim(t.Context(), inEpoch(minute, []string{"a", "b"}[i], int64(5+i)))
				switch {
				case err == nil:
					mu.Lock()
					order = append(order, int64(5+i))
					mu.Unlock()
				case !errors.Is(err, job.ErrSlotTaken) && !errors.Is(err, job.ErrNotLeader):
					t.Error(err)
				}
			}
		})
	}
	racers.Wait()
	if err := l.Claim(t.Context(), inEpoch(200, "a", 5)); !errors.Is(err, job.ErrNotLeader) {
		t.Errorf("the earlier term, in the end: %v", err)
	}
	if len(order) == 0 || len(order) > 100 {
		t.Errorf("%d of 100 slots were claimed", len(order))
	}
}

// The lock of a Redisson election is a hash, so the ledger reads the owner from this hash.
func TestALedgerBesideAnRLockAsksThatForTheLeader(t *testing.T) {
	g := newRig(t)
	l := NewLedger(g.store, LedgerOptions{LockKey: "baton", Format: script.Redisson})
	g.Do("HSET", "baton", "a:1", 1)
	if err := l.Claim(t.Context(), newRun("r1", 5, "a")); err != nil {
		t.Error(err)
	}
	if err := l.Claim(t.Context(), newRun("r2", 6, "b")); !errors.Is(err, job.ErrNotLeader) || !strings.Contains(err.Error(), `owner "a"`) {
		t.Errorf("another owner: %v", err)
	}
}
