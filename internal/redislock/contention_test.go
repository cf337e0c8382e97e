package redislock_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/redislock"
	"baton/internal/redislock/lua"
	"baton/internal/redislock/script"
	"baton/internal/testsupport"
)

// Without scripts, a client whose keys another client changes begins again. Twenty nodes ask without a pause, and each writes its
// priority. Nevertheless a node must win, the leader must renew, and an operator must be able to pause the election.
func TestABusyElectionWithoutScriptsGetsOn(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	s := open(t, r)
	e := redislock.NewElection(s, "baton", script.String)
	o := redislock.LockOptions{Key: "baton", TTL: 5 * time.Second, Interpreter: lua.Compile, NodeInfo: redislock.NodeInfo{Priority: 3}}
	node := func(id string) *redislock.Lock {
		o.NodeID = id
		return designedLock(t, s, o)
	}
	type term struct {
		lock  *redislock.Lock
		owner string
		epoch int64
	}
	wins := make(chan term)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for i := range 20 {
		lock := node(fmt.Sprint("n", i))
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				owner := fmt.Sprint("o", i, ".", n)
				if a, err := lock.Acquire(ctx, elector.Candidate{Owner: owner}); err == nil && a.Outcome == elector.Won {
					select {
					case wins <- term{lock, owner, a.Epoch}:
					case <-ctx.Done():
					}
				}
			}
		})
	}
	var toWin, toRenew []time.Duration
	for range 3 {
		began := time.Now()
		var now term
		select {
		case now = <-wins:
		case <-time.After(time.Minute):
			t.Fatal("nobody wins")
		}
		toWin = append(toWin, time.Since(began))
		for range 15 {
			began := time.Now()
			if _, err := now.lock.Renew(ctx, now.owner, now.epoch); err != nil {
				t.Errorf("renewal: %v", err)
			}
			toRenew = append(toRenew, time.Since(began))
		}
		if _, err := e.Pause(ctx, "by alice"); err != nil {
			t.Error(err)
		}
		if _, err := e.Resume(ctx, "by alice"); err != nil {
			t.Error(err)
		}
		if err := now.lock.Release(ctx, now.owner, elector.Handover{Event: "released"}); err != nil {
			t.Errorf("release: %v", err)
		}
	}
	t.Logf("won after at most %v, renewed within %v", slices.Max(toWin), slices.Max(toRenew))
}
