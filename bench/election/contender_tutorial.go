package main

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// setnxCampaign is the program of most introductions: the process whose SET NX EX succeeds leads, and EXPIRE keeps the key, regardless of
// the process that set it. The program checks nothing.
func setnxCampaign(ctx context.Context, s setting) error {
	client := redis.NewClient(&redis.Options{Addr: s.redis})
	defer client.Close()
	for ctx.Err() == nil {
		if won, err := client.SetNX(ctx, s.key, s.node, s.ttl).Result(); err != nil || !won {
			pause(ctx, s.poll)
			continue
		}
		s.hold(ctx, func(ctx context.Context) bool {
			client.Expire(ctx, s.key, s.ttl)
			return true
		}, nil)
		client.Del(context.WithoutCancel(ctx), s.key)
	}
	return nil
}

// These are the scripts of the better introductions.
const (
	renewIfOurs   = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) else return 0 end`
	releaseIfOurs = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`
)

// luaCampaign compares before it renews or releases, and renews in a goroutine.
func luaCampaign(ctx context.Context, s setting) error {
	client := redis.NewClient(&redis.Options{Addr: s.redis})
	defer client.Close()
	renew, release := redis.NewScript(renewIfOurs), redis.NewScript(releaseIfOurs)
	for ctx.Err() == nil {
		if won, err := client.SetNX(ctx, s.key, s.node, s.ttl).Result(); err != nil || !won {
			pause(ctx, s.poll)
			continue
		}
		s.hold(ctx, func(ctx context.Context) bool {
			n, err := renew.Run(ctx, client, []string{s.key}, s.node, s.ttl.Milliseconds()).Int()
			return err == nil && n == 1
		}, nil)
		release.Run(context.WithoutCancel(ctx), client, []string{s.key}, s.node)
	}
	return nil
}
