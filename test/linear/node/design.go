package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"baton/internal/elector"
	"baton/internal/quorum"
	"baton/internal/redisconn"
	"baton/internal/redislock"
	"baton/internal/redislock/lua"
	"baton/internal/redislock/script"
	"baton/test/linear/wire"
)

// open opens the lock of a design, and forwards hints until ctx ends. Call leave when the election has ended.
func open(ctx context.Context, s wire.Setup, to *ears) (lock elector.Lock, leave func(), err error) {
	switch s.Design {
	case wire.Lua:
		return openRedis(ctx, s, redisconn.Options{URL: s.Redis[0]}, redislock.LockOptions{}, to)
	case wire.SetNX:
		return openRedis(ctx, s, redisconn.Options{URL: s.Redis[0]}, redislock.LockOptions{Interpreter: lua.Compile}, to)
	case wire.Redisson:
		return openRedis(ctx, s, redisconn.Options{URL: s.Redis[0]}, redislock.LockOptions{Format: script.Redisson}, to)
	case wire.Sentinel:
		behind := &redisconn.SentinelOptions{Master: s.Master, Addresses: s.Sentinels}
		return openRedis(ctx, s, redisconn.Options{Sentinel: behind}, redislock.LockOptions{WaitReplicas: 1}, to)
	case wire.Quorum:
		return openQuorum(ctx, s, to)
	}
	return nil, nil, fmt.Errorf("no design %q", s.Design)
}

// ears collects the hints of all stores.
type ears struct {
	hints     chan elector.Hint
	listening atomic.Int32 // number of stores whose hints are listened to
}

func openRedis(ctx context.Context, s wire.Setup, o redisconn.Options, l redislock.LockOptions, to *ears) (elector.Lock, func(), error) {
	o.ClientName = s.NodeID
	store, err := redisconn.Open(o)
	if err != nil {
		return nil, nil, err
	}
	l.Key, l.NodeID, l.TTL, l.NodeInfo = s.LockKey, s.NodeID, s.Timing.TTL, redislock.NodeInfo{Version: "test"}
	lock, err := redislock.NewLock(store, l)
	if err != nil {
		return nil, nil, err
	}
	go redislock.WatchAll(ctx, store, redislock.Watched{LockKey: s.LockKey, Hints: to.hints, Listening: &to.listening})
	return lock, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Timing.Timeout)
		defer cancel()
		_ = lock.Leave(ctx) // safety does not depend on the list of nodes, so an error does not matter
	}, nil
}

// openQuorum makes one lock from the locks of all masters.
func openQuorum(ctx context.Context, s wire.Setup, to *ears) (elector.Lock, func(), error) {
	var locks []elector.Lock
	var leaves []func()
	for _, url := range s.Redis {
		lock, leave, err := openRedis(ctx, s, redisconn.Options{URL: url}, redislock.LockOptions{}, to)
		if err != nil {
			return nil, nil, err
		}
		locks, leaves = append(locks, lock), append(leaves, leave)
	}
	lock, err := quorum.New(locks, quorum.Options{TTL: s.Timing.TTL, NewOwner: newOwner})
	return lock, func() {
		var all sync.WaitGroup
		for _, leave := range leaves {
			all.Go(leave)
		}
		all.Wait()
	}, err
}
