package redisledger

import (
	"context"
	"fmt"

	"github.com/gomodule/redigo/redis"
)

// keepEvents is the maximum length of the stream {K}:events. The lock's scripts use the same limit.
const keepEvents = 1000

// Event is an event that concerns a leader's jobs. It is added to the event history of the lock.
type Event struct {
	Event  string
	NodeID string
	Epoch  int64
	Code   string // the code of Reason, for programs
	Reason string
}

// AddEvent adds an entry to the event history. It does not verify the leader, because no decision depends on the history.
func (l *Ledger) AddEvent(ctx context.Context, e Event) error {
	key := l.keys.Events()
	_, err := l.store.Run(ctx, l.keys.Lock(), func(c redis.Conn) (any, error) {
		return redis.DoContext(c, ctx, "XADD", key, "MAXLEN", "~", keepEvents, "*", "event", e.Event, "node_id", e.NodeID, "epoch", e.Epoch,
			"reason", e.Reason, "code", e.Code)
	})
	if err != nil {
		return fmt.Errorf("add an event to %q: %w", key, err)
	}
	return nil
}
