package redisstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"baton/internal/elector"

	"github.com/gomodule/redigo/redis"
)

var (
	acquireScript = loadScript("lock_acquire", 5)
	renewScript   = loadScript("lock_renew", 3)
	releaseScript = loadScript("lock_release", 4)
	raiseScript   = loadScript("lock_raise", 2)
)

// presenceInterval is how often a standby that only polls writes that it is alive.
const presenceInterval = 15 * time.Second

// Presence is what a node tells the others of itself. State and the time are
// added by the scripts.
type Presence struct {
	Version    string `json:"version"`
	ConfigHash string `json:"config_hash"`
	Address    string `json:"address"` // of its status page
}

// Lock is the election's lock in a single Redis: a string key with a lease. It
// implements elector.Lock.
type Lock struct {
	store    *Store
	keys     keys
	nodeID   string
	ttlMS    int64
	presence string

	// The connection is the lock's own: a renewal never waits for a place in a
	// pool that jobs use.
	mu   sync.Mutex
	conn redis.Conn

	// Of the campaign alone:
	asked  time.Time // when the whole script last answered held
	holder string    // and what it said
	until  time.Time // when the lease of the last answer has ended: somebody else may hold the lock then
}

// NewLock makes the node's view of the lock with that key.
func NewLock(store *Store, lockKey, nodeID string, ttl time.Duration, p Presence) (*Lock, error) {
	if err := CheckKey(lockKey); err != nil {
		return nil, err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode the presence of node %q: %w", nodeID, err)
	}
	return &Lock{store: store, keys: newKeys(lockKey), nodeID: nodeID, ttlMS: ttl.Milliseconds(), presence: string(text)}, nil
}

// Acquire implements elector.Lock.
func (l *Lock) Acquire(ctx context.Context, c elector.Candidate) (elector.Answer, error) {
	if now := time.Now(); c.Polling && now.Sub(l.asked) < presenceInterval && now.Before(l.until) {
		// One plain command instead of a script of six: standbys are many. The
		// holder is still the same, since the lease that it had has not ended.
		left, err := redis.Int64(l.do(ctx, func(conn redis.Conn) (any, error) {
			return redis.DoContext(conn, ctx, "PTTL", l.keys.lock())
		}))
		if err != nil {
			return elector.Answer{}, fmt.Errorf("look at lock %q: %w", l.keys.lock(), err)
		}
		if left > 0 || left == noExpiry {
			l.until = time.Now().Add(leaseLeft(left))
			return elector.Answer{Outcome: elector.Held, Holder: l.holder, Left: leaseLeft(left)}, nil
		}
	}
	k := l.keys
	reply, err := redis.Values(l.do(ctx, func(conn redis.Conn) (any, error) {
		return acquireScript.DoContext(ctx, conn, k.lock(), k.term(), k.nodes(), k.control(), k.events(),
			c.Owner, l.ttlMS, l.nodeID, l.presence, c.Floor)
	}))
	if err != nil {
		return elector.Answer{}, fmt.Errorf("acquire lock %q: %w", k.lock(), l.store.misfit(ctx, k, err))
	}
	return l.answer(reply)
}

func (l *Lock) answer(reply []any) (elector.Answer, error) {
	var word, detail string
	var left int64
	if _, err := redis.Scan(reply, &word, &detail, &left); err != nil {
		return elector.Answer{}, fmt.Errorf("acquire lock %q: unexpected reply: %w", l.keys.lock(), err)
	}
	switch word {
	case "won":
		l.asked = time.Time{}
		epoch, err := strconv.ParseInt(detail, 10, 64)
		if err != nil {
			return elector.Answer{}, fmt.Errorf("acquire lock %q: epoch %q in %q is not a number: %w", l.keys.lock(), detail, l.keys.term(), err)
		}
		return elector.Answer{Outcome: elector.Won, Epoch: epoch}, nil
	case "held":
		l.asked, l.holder = time.Now(), detail
		l.until = l.asked.Add(leaseLeft(left))
		return elector.Answer{Outcome: elector.Held, Holder: detail, Left: leaseLeft(left)}, nil
	default:
		return elector.Answer{Outcome: elector.Wait, Reason: word + " for " + detail, Left: milliseconds(left)}, nil
	}
}

// Renew implements elector.Lock.
func (l *Lock) Renew(ctx context.Context, owner string, epoch int64) (elector.Order, error) {
	k := l.keys
	reply, err := redis.Strings(l.do(ctx, func(conn redis.Conn) (any, error) {
		return renewScript.DoContext(ctx, conn, k.lock(), k.nodes(), k.control(), owner, l.ttlMS, l.nodeID, l.presence)
	}))
	if err != nil {
		return elector.Order{}, fmt.Errorf("renew lock %q: %w", k.lock(), err)
	}
	if reply[0] != "renewed" {
		return elector.Order{}, fmt.Errorf("renew lock %q (found owner %q): %w", k.lock(), reply[1], elector.ErrLost)
	}
	return elector.Order{StepDown: reply[1] == "1", To: reply[2], Reason: reply[3]}, nil
}

// Release implements elector.Lock.
func (l *Lock) Release(ctx context.Context, owner string, h elector.Handover) error {
	k := l.keys
	_, err := l.do(ctx, func(conn redis.Conn) (any, error) {
		return releaseScript.DoContext(ctx, conn, k.lock(), k.term(), k.control(), k.events(),
			owner, l.nodeID, h.Event, h.Reason, h.To, elector.ReserveFor.Milliseconds(), k.wake())
	})
	if err != nil {
		return fmt.Errorf("release lock %q: %w", k.lock(), err)
	}
	return nil
}

// Raise implements elector.Lock. It is asked by a job, so it uses a pooled
// connection: a renewal must not wait for it.
func (l *Lock) Raise(ctx context.Context, owner string, floor int64) (int64, error) {
	reply, err := redis.String(l.store.run(ctx, l.keys.lock(), func(conn redis.Conn) (any, error) {
		return raiseScript.DoContext(ctx, conn, l.keys.lock(), l.keys.term(), owner, floor)
	}))
	if err != nil {
		return 0, fmt.Errorf("raise the epoch of lock %q: %w", l.keys.lock(), err)
	}
	if reply == "lost" {
		return 0, elector.ErrLost
	}
	return strconv.ParseInt(reply, 10, 64)
}

// Leave takes the node off the list of nodes, when it shuts down.
func (l *Lock) Leave(ctx context.Context) error {
	_, err := l.do(ctx, func(conn redis.Conn) (any, error) {
		return redis.DoContext(conn, ctx, "HDEL", l.keys.nodes(), l.nodeID)
	})
	l.Close()
	return err
}

// Close drops the lock's connection. The lock, if held, stays held.
func (l *Lock) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop()
}

// do runs one command on the lock's own connection, dialling if there is none. A
// connection on which anything went wrong is not used again: a late reply must
// not be taken for that of the next command, and a server that refuses may have
// been replaced by another under the same name.
func (l *Lock) do(ctx context.Context, command func(redis.Conn) (any, error)) (any, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		conn, err := l.store.Dial(ctx, l.keys.lock())
		if err != nil {
			return nil, err
		}
		l.conn = conn
	}
	reply, err := command(l.conn)
	if err != nil {
		l.drop()
	}
	return reply, explain(err)
}

func (l *Lock) drop() {
	if l.conn != nil {
		_ = l.conn.Close() // it is broken, or will not be used again
		l.conn = nil
	}
}

// noExpiry is PTTL's answer for a key without one: another program has taken the
// lock for ever.
const noExpiry = -1

// leaseLeft is how long a standby should wait at most, by PTTL's answer.
func leaseLeft(pttl int64) time.Duration {
	if pttl == noExpiry {
		return time.Hour
	}
	return milliseconds(pttl)
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
