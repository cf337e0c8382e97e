package redislock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
)

// ErrNotHeld is the answer to breaking a lock that nobody holds.
var ErrNotHeld = errors.New("nobody holds it")

// Broken tells whom a lock was taken from.
type Broken struct {
	Owner  string
	NodeID string        // "" of a foreign client
	Epoch  int64         // 0 of a foreign client
	Left   time.Duration // until somebody else may have the lock: so long its holder may trust it
	// Forgotten reports that the epoch in Redis could not be counted on from: the next
	// one goes on from Redis' clock. Owner is "" then if nobody held the lock.
	Forgotten bool
}

// Break takes the lock away from whoever holds it, and tells the holder. Nobody
// wins before the holder's lease would have ended. The reason is for the event
// history. An epoch that cannot be counted on from is forgotten. ErrNotHeld if the
// lock is free, and its epoch a sound one.
func (e *Election) Break(ctx context.Context, reason string) (Broken, error) {
	k := e.keys
	reply, err := redis.Values(e.store.Run(ctx, k.Lock(), func(conn redis.Conn) (any, error) {
		return scriptsOf(e.format).breaks.DoContext(ctx, conn, k.Lock(), k.Term(), k.Events(), k.Quarantine(), reason, k.Wake(),
			time.Now().UnixMilli())
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
