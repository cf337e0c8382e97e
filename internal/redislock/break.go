package redislock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
)

// ErrNotHeld means that the lock to be broken is free.
var ErrNotHeld = errors.New("nobody holds it")

// Broken describes the holder that lost its lock to a break.
type Broken struct {
	Owner  string
	NodeID string        // "" of a foreign client
	Epoch  int64         // 0 of a foreign client
	Left   time.Duration // until another node may win: the old holder may trust its lease until then
	// Forgotten: the epoch in Redis was invalid and was dropped; the next epoch follows from
	// Redis' clock. Owner is "" then if the lock was free.
	Forgotten bool
}

// Break takes the lock away from its holder and wakes that node. No node wins before the
// holder's lease would have ended. The reason goes into the event history. An invalid epoch
// is dropped. ErrNotHeld if the lock is free and its epoch valid.
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
