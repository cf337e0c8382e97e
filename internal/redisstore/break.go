package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
)

var stringBreak, redissonBreak = loadBreak(String), loadBreak(Redisson)

func loadBreak(f Format) *redis.Script {
	return redis.NewScript(4, source("format_"+string(f))+source("lock_lib")+source("lock_break"))
}

// ErrNotHeld is the answer to breaking a lock that nobody holds.
var ErrNotHeld = errors.New("nobody holds it")

// Broken tells whom a lock was taken from.
type Broken struct {
	Owner  string
	NodeID string        // "" of a foreign client
	Epoch  int64         // 0 of a foreign client
	Left   time.Duration // until somebody else may have the lock: so long its holder may trust it
}

// Break takes the lock away from whoever holds it, and tells the holder. Nobody
// wins before the holder's lease would have ended. The reason is for the event
// history. ErrNotHeld if the lock is free.
func (e *Election) Break(ctx context.Context, reason string) (Broken, error) {
	k := e.keys
	script := stringBreak
	if e.format == Redisson {
		script = redissonBreak
	}
	reply, err := redis.Values(e.store.run(ctx, k.lock(), func(conn redis.Conn) (any, error) {
		return script.DoContext(ctx, conn, k.lock(), k.term(), k.events(), k.quarantine(), reason, k.wake())
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
		return b, fmt.Errorf("break lock %q: %w", k.lock(), err)
	}
	b.Epoch, b.Left = number(epoch), milliseconds(left)
	return b, nil
}
