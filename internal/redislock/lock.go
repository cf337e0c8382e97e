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

// LockOptions are the options of one node for one lock.
type LockOptions struct {
	Key      string
	NodeID   string
	TTL      time.Duration
	NodeInfo NodeInfo
	// Format is the format of the lock key. Default: String.
	Format script.Format
	// Interpreter, if set, runs the lock's scripts in this process, for a server that forbids scripts. The lock then works with WATCH,
	// MULTI and EXEC. If Interpreter is nil, the server runs the scripts.
	Interpreter script.Interpreter
	// WaitReplicas is the number of replicas that must have the lock before it counts as
	// taken or renewed.
	WaitReplicas int
	// Shared is the connection that the lock shares with other locks. If it is nil, the lock has its own connection.
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

	// The lock has its own connection or shares one with all locks. So a renewal never waits for a connection of the pool that jobs use.
	shared  *redisconn.Shared // shared by all locks; nil if the lock has its own
	mu      sync.Mutex
	conn    redis.Conn // the lock's own connection
	renewed redis.Conn // the connection of the last successful renewal

	// Only the campaign uses these fields. The clock of until continues while the host is suspended.
	held  acquireReply      // the last answer of the script, not of pollLease
	until heartbeat.Instant // end of the last answer's lease: afterwards another node may hold the lock
	seen  memory            // the field early is valid until the time until

	written atomic.Pointer[writtenInfo] // the entry that was written last; nil before the first entry
}

// acquireReply is the script's reply to an attempt to acquire the lock.
type acquireReply struct {
	word    string // won, held or wait
	detail  string // held: the holder's node; wait: the code of the reason
	about   string // wait: the subject of the code
	left    int64  // the rest of the lease or of the wait, in ms; noExpiry if the lock does not expire
	epoch   int64  // the last known epoch; 0 if a foreign client holds the lock
	leaseMS int64  // held: the holder's ttl, if it is one of ours
	freeMS  int64  // won: for how long no leader had given a sign of life, if known
}

// NewLock returns one node's view of a lock. It does not connect.
func NewLock(store *redisconn.Store, o LockOptions) (*Lock, error) {
	if err := redisconn.CheckKey(o.Key); err != nil {
		return nil, err
	}
	if o.Interpreter != nil && o.Format == script.Redisson {
		return nil, errors.New("baton can take a lock in Redisson's format only by scripts: set acquire to lua")
	}
	text, err := json.Marshal(o.NodeInfo)
	if err != nil {
		return nil, fmt.Errorf("encode the presence of node %q: %w", o.NodeID, err)
	}
	p := participant{
		keys: script.KeysOf(o.Key), nodeID: o.NodeID, ttlMS: o.TTL.Milliseconds(),
		nodeInfo: new(atomic.Pointer[string]), priority: o.NodeInfo.Priority,
	}
	p.nodeInfo.Store(new(string(text)))
	l := &Lock{store: store, participant: p, replicas: o.WaitReplicas, scripted: scripted{p, scriptsOf(o)}}
	if o.Shared != nil {
		if err := o.Shared.Claim(o.Key); err != nil {
			return nil, err
		}
		l.leave = func() { o.Shared.Free(o.Key) }
		// A lock needs its own connection in three cases. A transaction watches keys, which is a state of its connection. WAIT counts only
		// the writes of its own connection, and would delay other locks on it. On a Cluster the locks are on different servers.
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
			return elector.Answer{}, err // the fields held and until keep the known lease
		}
		if left != 0 {
			return l.stillHeld(sent, left), nil
		}
	}
	sent, text := heartbeat.Boottime(), l.nodeInfo.Load()
	v, err := l.acquire(ctx, c)
	if err != nil {
		return elector.Answer{}, fmt.Errorf("acquire lock %q: %w", l.keys.Lock(), explainWrongType(ctx, l.store, l.keys, err))
	}
	l.nodeInfoWritten(text)
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

// waitWords returns the reason why the free lock was not granted, as a text.
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

func (l *Lock) acquire(ctx context.Context, c elector.Candidate) (v acquireReply, err error) {
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
		// The other nodes are not woken, because they would also lack these replicas.
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
	ctx = redisconn.First(ctx)
	_, err = l.do(ctx, func(conn redis.Conn) (any, error) {
		fresh := conn != l.renewed
		text := l.nodeInfo.Load()
		withPresence := fresh || l.nodeInfoDue() // a server that has lost its data has also lost the node's entry
		if order, err = l.scripted.renew(ctx, conn, owner, epoch, fresh, withPresence); err != nil {
			return nil, err
		}
		if l.renewed = conn; withPresence {
			l.nodeInfoWritten(text)
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

// GiveUp releases the lock, and also reports whether the owner held it.
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

// Raise implements elector.Lock. Jobs call Raise, and a renewal must not wait for it. Therefore Raise uses a pooled connection.
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

// awaitReplicas waits until enough replicas have the writes that were sent over conn. After an error the writes may survive or be
// lost, because no other server has the writes of an isolated master.
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

// Leave removes the node from the list of nodes at shutdown, and closes the lock. It does not remove the entry of another process
// with the same id.
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

// Close closes the lock's connection. It does not release the lock.
func (l *Lock) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop()
	if l.leave != nil {
		l.leave()
		l.leave = nil
	}
}

// do runs one command on the lock's connection. It dials first if there is no connection. After any error except ErrLost it drops
// the connection. Otherwise a late reply would be read as the reply to the next command. It also drops the connection after a
// refusal, because the name of the host may now belong to another server.
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
