package redislock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
)

// ErrNotHeld means that the lock cannot be broken because it is free.
var ErrNotHeld = errors.New("nobody holds it")

// Broken describes the holder that lost the lock to Break.
type Broken struct {
	Owner  string
	NodeID string        // "" for a foreign client
	Epoch  int64         // 0 for a foreign client
	Left   time.Duration // the time until another node may win, because the old holder may trust its lease until then
	// Forgotten means that the epoch in Redis was invalid and that Break has deleted it. The next epoch follows from Redis' clock.
	// In this case Owner is "" if the lock was free.
	Forgotten bool
}

// Break takes the lock from its holder and wakes that node. No other node can win before the time when the old lease would have
// ended. Break adds the reason to the event history. Break also deletes an invalid epoch. It returns ErrNotHeld if the lock is free
// and the epoch valid.
func (e *Election) Break(ctx context.Context, reason string) (Broken, error) {
	k := e.keys
	reply, err := redis.Values(e.store.Run(ctx, k.Lock(), func(conn redis.Conn) (any, error) {
		return scriptsOf(LockOptions{Format: e.format}).breaks.DoContext(ctx, conn, k.Lock(), k.Term(), k.Events(), k.Quarantine(),
			reason, k.Wake(), time.Now().UnixMilli())
	}))
	var word, epoch string
	var b Broken
	var left int64
	if err == nil {
		_, err = redis.Scan(reply, &word, &b.Owner, &b.NodeID, &epoch, &left)
		if word == "free" {
			return b, ErrNotHeld
		}
	}
	if err != nil {
		return b, fmt.Errorf("break lock %q: %w", k.Lock(), err)
	}
	b.Epoch, b.Left, b.Forgotten = number(epoch), milliseconds(left), word == "forgotten"
	return b, nil
}
