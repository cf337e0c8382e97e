package redislock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"baton/internal/elector"
	"baton/internal/heartbeat"
	"baton/internal/redisconn"
	"baton/internal/redislock/script"

	"github.com/gomodule/redigo/redis"
)

// LockOptions configure one node's view of one lock.
type LockOptions struct {
	Key      string
	NodeID   string
	TTL      time.Duration
	Presence Presence
	// Format is how the key is written; String unless set.
	Format script.Format
	// Interpreter has the lock taken, renewed and released by WATCH, MULTI and EXEC, for a server
	// that forbids scripts: it runs the scripts here. nil: the server runs them.
	Interpreter script.Interpreter
	// WaitReplicas is the number of replicas that must have the lock before it counts as
	// taken or renewed.
	WaitReplicas int
	// Shared carries the lock's commands together with those of other locks; nil
	// gives the lock a connection of its own.
	Shared *redisconn.Shared
}

// Lock is the election's lock in one Redis deployment: a key with a lease. It
// implements elector.Lock.
type Lock struct {
	store *redisconn.Store
	participant
	replicas int
	scripted scripted
	leave    func() // frees the process' claim to the key; may be nil

	// The connection is the lock's own or shared by all locks: a renewal never waits for a
	// connection of the pool that jobs use.
	shared  *redisconn.Shared // shared by all locks; nil if the lock has its own
	mu      sync.Mutex
	conn    redis.Conn // its own
	renewed redis.Conn // the connection of the last successful renewal

	// For the campaign only, by a clock that counts suspend:
	held  verdict           // the last answer of the script, not of pollLease
	until heartbeat.Instant // end of the last answer's lease: afterwards another node may hold the lock
	seen  memory            // its early lasts until then

	written atomic.Pointer[writtenPresence] // nil before the first one
}

// verdict is the reply to an acquire.
type verdict struct {
	word    string // won, held or wait
	detail  string // held: the holder's node; wait: the code of why
	about   string // wait: the subject of the code
	left    int64  // in ms: of the lease, or of the wait; noExpiry without an end
	epoch   int64  // the last known one; 0 if a foreign client holds the lock
	leaseMS int64  // held: the holder's ttl, if it is one of ours
	freeMS  int64  // won: for how long no leader had given a sign of life, if known
}

// NewLock makes the node's view of a lock. It does not connect.
func NewLock(store *redisconn.Store, o LockOptions) (*Lock, error) {
	if err := redisconn.CheckKey(o.Key); err != nil {
		return nil, err
	}
	if o.Interpreter != nil && o.Format == script.Redisson {
		return nil, errors.New("a lock in Redisson's format is taken by scripts only: set acquire to lua")
	}
	text, err := json.Marshal(o.Presence)
	if err != nil {
		return nil, fmt.Errorf("encode the presence of node %q: %w", o.NodeID, err)
	}
	p := participant{
		keys: script.KeysOf(o.Key), nodeID: o.NodeID, ttlMS: o.TTL.Milliseconds(),
		presence: new(atomic.Pointer[string]), priority: o.Presence.Priority,
	}
	p.presence.Store(new(string(text)))
	l := &Lock{store: store, participant: p, replicas: o.WaitReplicas, scripted: scripted{p, scriptsOf(o)}}
	if o.Shared != nil {
		if err := o.Shared.Claim(o.Key); err != nil {
			return nil, err
		}
		l.leave = func() { o.Shared.Free(o.Key) }
		// A transaction watches keys, which is a state of its connection. WAIT counts the
		// writes of its own connection, and would hold up the other locks on it.
		if o.Interpreter == nil && o.WaitReplicas == 0 && !store.IsCluster() {
			l.shared = o.Shared
		}
	}
	return l, nil
}

// Acquire implements elector.Lock.
func (l *Lock) Acquire(ctx context.Context, c elector.Candidate) (elector.Answer, error) {
	if c.Polling && l.held.word == "held" && heartbeat.Boottime() < l.until {
		sent := heartbeat.Boottime()
		left, err := l.pollLease(ctx, c)
		if err != nil {
			return elector.Answer{}, err // the known lease stays known
		}
		if left != 0 {
			return l.stillHeld(sent, left), nil
		}
	}
	sent, text := heartbeat.Boottime(), l.presence.Load()
	v, err := l.acquire(ctx, c)
	if err != nil {
		return elector.Answer{}, fmt.Errorf("acquire lock %q: %w", l.keys.Lock(), explainWrongType(ctx, l.store, l.keys, err))
	}
	l.presenceWritten(text)
	l.held = v
	left := leaseLeft(v.left)
	switch v.word {
	case "won":
		l.until = 0
		return elector.Answer{Outcome: elector.Won, Epoch: v.epoch, FreeFor: milliseconds(v.freeMS)}, nil
	case "held":
		l.seen.early = ""
		if v.leaseMS > 0 { // unknown for other programs' locks
			l.seen.leaseMS, l.seen.early = v.leaseMS, "lease"
		}
		return l.stillHeld(sent, left), nil
	}
	code := elector.Code(v.detail)
	if code == elector.CodeQuarantine {
		l.until, l.seen.early = sent.Add(left), v.detail
	}
	return elector.Answer{Outcome: elector.Wait, Code: code, Reason: waitWords(code, v.about), Left: left, Epoch: v.epoch}, nil
}

// waitWords says why a free lock is not granted.
func waitWords(code elector.Code, about string) string {
	switch code {
	case elector.CodePaused:
		return strings.TrimSpace("paused " + about)
	case elector.CodeQuarantine:
		return "in quarantine, since redis has restarted, failed over or lost its data"
	case elector.CodeReserved:
		return "reserved for " + about
	case elector.CodePriority:
		return "left to " + about
	case elector.CodeLeft:
		return "left to others: this node does not campaign"
	}
	return string(code)
}

func (l *Lock) acquire(ctx context.Context, c elector.Candidate) (v verdict, err error) {
	seen := func() memory {
		m := l.remembered()
		m.leaseMS = max(m.leaseMS, c.Lease.Milliseconds())
		return m
	}
	_, err = l.do(ctx, func(conn redis.Conn) (any, error) {
		if v, err = l.scripted.acquire(ctx, conn, c, seen); err != nil || v.word != "won" {
			return nil, err
		}
		short := l.awaitReplicas(ctx, conn)
		if short == nil || conn.Err() != nil {
			return nil, short // cannot release; the same owner may ask again
		}
		// Withdraw without waking the others: they would find the replicas missing, too.
		_, err := l.scripted.release(ctx, conn, c.Owner, elector.Handover{Event: string(elector.EventWithdrawn), Reason: short.Error()})
		if err = explain(err); err != nil && !errors.Is(err, elector.ErrRefused) {
			return nil, fmt.Errorf("%w (%w: %w)", short, elector.ErrSpent, err)
		}
		return nil, short
	})
	return v, err
}

// Renew implements elector.Lock.
func (l *Lock) Renew(ctx context.Context, owner string, epoch int64) (order elector.Order, err error) {
	_, err = l.do(ctx, func(conn redis.Conn) (any, error) {
		fresh := conn != l.renewed
		text := l.presence.Load()
		withPresence := fresh || l.presenceDue() // a server that lost its data has lost this, too
		if order, err = l.scripted.renew(ctx, conn, owner, epoch, fresh, withPresence); err != nil {
			return nil, err
		}
		if l.renewed = conn; withPresence {
			l.presenceWritten(text)
		}
		return nil, l.awaitReplicas(ctx, conn)
	})
	if err != nil {
		return elector.Order{}, fmt.Errorf("renew lock %q: %w", l.keys.Lock(), err)
	}
	return order, nil
}

// Release implements elector.Lock.
func (l *Lock) Release(ctx context.Context, owner string, h elector.Handover) error {
	_, err := l.GiveUp(ctx, owner, h)
	return err
}

// GiveUp is Release that also reports whether the owner held the lock.
func (l *Lock) GiveUp(ctx context.Context, owner string, h elector.Handover) (was bool, err error) {
	_, err = l.do(ctx, func(conn redis.Conn) (any, error) {
		was, err = l.scripted.release(ctx, conn, owner, h)
		return nil, err
	})
	if err != nil {
		return false, fmt.Errorf("release lock %q: %w", l.keys.Lock(), err)
	}
	return was, nil
}

// Raise implements elector.Lock. Jobs call it, so it uses a pooled connection: a renewal must
// not wait for it.
func (l *Lock) Raise(ctx context.Context, owner string, floor int64) (epoch int64, err error) {
	_, err = l.store.Run(ctx, l.keys.Lock(), func(conn redis.Conn) (any, error) {
		epoch, err = l.scripted.raise(ctx, conn, owner, floor)
		return nil, err
	})
	if err != nil {
		return 0, fmt.Errorf("raise the epoch of lock %q: %w", l.keys.Lock(), forElector(err))
	}
	return epoch, nil
}

// awaitReplicas waits until enough replicas have the writes of conn. After an error the writes
// may stand or be lost: an isolated master keeps them for itself.
func (l *Lock) awaitReplicas(ctx context.Context, conn redis.Conn) error {
	if l.replicas == 0 {
		return nil
	}
	patience := time.Second
	if deadline, ok := ctx.Deadline(); ok {
		patience = time.Until(deadline) / 2 // the rest is for the answer, and for giving the lock back
	}
	got, err := redis.Int(redis.DoContext(conn, ctx, "WAIT", l.replicas, max(patience.Milliseconds(), 1)))
	if err != nil {
		return fmt.Errorf("ask how many replicas have the lock: %w", err)
	}
	if got < l.replicas {
		return fmt.Errorf("%d of the %d replicas that election.wait_replicas asks for have the lock: are they connected to the master?",
			got, l.replicas)
	}
	return nil
}

// Leave removes the node from the list of nodes at shutdown, but keeps the entry of another
// process with the same id.
func (l *Lock) Leave(ctx context.Context) error {
	_, err := l.do(ctx, func(conn redis.Conn) (any, error) {
		if others, err := l.othersEntry(ctx, conn); err != nil || others {
			return nil, err
		}
		if _, err := redis.DoContext(conn, ctx, "HDEL", l.keys.Control(), l.keys.Priority(l.nodeID)); err != nil {
			return nil, err
		}
		return redis.DoContext(conn, ctx, "HDEL", l.keys.Nodes(), l.nodeID)
	})
	l.Close()
	return err
}

// Close drops the lock's connection. The lock, if held, stays held.
func (l *Lock) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop()
	if l.leave != nil {
		l.leave()
		l.leave = nil
	}
}

// do runs one command on the lock's connection, and dials first if it has no connection. After any error the
// connection is dropped: a late reply must not be read as that of the next command, and after
// a refusal another server may have the same name.
func (l *Lock) do(ctx context.Context, command func(redis.Conn) (any, error)) (any, error) {
	if l.shared != nil {
		reply, err := command(l.shared.Conn())
		return reply, explain(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		conn, err := l.store.Dial(ctx, l.keys.Lock())
		if err != nil {
			return nil, forElector(err)
		}
		l.conn = conn
	}
	reply, err := command(l.conn)
	if err != nil && !errors.Is(err, elector.ErrLost) || l.conn.Err() != nil {
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
