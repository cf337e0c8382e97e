package redisstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"baton/internal/elector"
	"baton/internal/heartbeat"

	"github.com/gomodule/redigo/redis"
)

// presenceInterval is how often a node that only polls, or only renews, writes that
// it is alive. With the longest wait between two polls it is less than the time
// after which others take a node for gone.
const presenceInterval = 25 * time.Second

// Presence is what a node tells the others of itself. State and the time are
// added when it is written.
type Presence struct {
	Version    string `json:"version"`
	ConfigHash string `json:"config_hash"`
	Address    string `json:"address"` // of its status page
	// Priority: of live nodes the one with the highest goes first.
	Priority int `json:"priority,omitempty"`
	// Observer: the node never leads.
	Observer bool `json:"observer,omitempty"`
}

// LockOptions are one node's view of one lock.
type LockOptions struct {
	Key      string
	NodeID   string
	TTL      time.Duration
	Presence Presence
	// Format is how the key is written; String unless set.
	Format Format
	// WithoutScripts takes, renews and releases by SET NX PX and WATCH/MULTI/EXEC,
	// for servers that forbid scripts.
	WithoutScripts bool
	// WaitReplicas is how many replicas must have the lock before it counts as
	// taken or renewed.
	WaitReplicas int
	// Shared carries the lock's commands together with those of other locks; nil
	// gives the lock a connection of its own.
	Shared *Shared
}

// Lock is the election's lock in one Redis deployment: a key with a lease. It
// implements elector.Lock.
type Lock struct {
	store *Store
	participant
	replicas int
	protocol protocol
	leave    func() // tells the process that it campaigns for the key no more; may be nil

	// The connection is the lock's own, or that of all locks: a renewal never waits
	// for a place in a pool that jobs use.
	shared  *Shared // that of all locks; nil for one of its own
	mu      sync.Mutex
	conn    redis.Conn // its own
	renewed redis.Conn // on which a renewal was answered last

	// Of the campaign alone, by a clock that goes on in suspend:
	held  verdict           // what the lock last answered by more than a look
	until heartbeat.Instant // when the lease of the last answer has ended: somebody else may hold the lock then
	seen  memory            // early is what lasts until then

	told atomic.Int64 // the heartbeat.Instant at which the node's presence was last written
}

// protocol is how a lock is asked: by scripts, or without. Each method is one
// attempt on a connection to the server that has the lock key.
type protocol interface {
	acquire(ctx context.Context, conn redis.Conn, c elector.Candidate, m memory) (verdict, error)
	// renew returns ErrLost, and who holds the lock instead, in its error. fresh
	// says that it is the first renewal on conn: the server behind it may be
	// another, or have restarted. tell says to write the node's presence, too.
	renew(ctx context.Context, conn redis.Conn, owner string, epoch int64, fresh, tell bool) (elector.Order, error)
	// release reports whether the lock was the owner's.
	release(ctx context.Context, conn redis.Conn, owner string, h elector.Handover) (bool, error)
	raise(ctx context.Context, conn redis.Conn, owner string, floor int64) (int64, error)
}

// verdict is the reply to an acquire.
type verdict struct {
	word    string // won, held, quarantine or wait
	detail  string // held: the holder's node; wait: why
	left    int64  // in ms: of the lease, or of the wait; noExpiry without an end
	epoch   int64  // the last one that is known; of held 0 for a foreign client's
	leaseMS int64  // of held: how long a lease the holder asks for, if it is one of ours
}

// memory is what a candidate has seen, and Redis may have lost since.
type memory struct {
	early   string // "lease" or "quarantine": one that cannot be over yet by this node's clock
	leaseMS int64  // the longest of them all
}

// NewLock makes the node's view of a lock. It does not connect.
func NewLock(store *Store, o LockOptions) (*Lock, error) {
	if err := CheckKey(o.Key); err != nil {
		return nil, err
	}
	if o.WithoutScripts && o.Format == Redisson {
		return nil, errors.New("a lock in Redisson's format is taken by scripts only: set acquire to lua")
	}
	text, err := json.Marshal(o.Presence)
	if err != nil {
		return nil, fmt.Errorf("encode the presence of node %q: %w", o.NodeID, err)
	}
	p := participant{
		keys: newKeys(o.Key), nodeID: o.NodeID, ttlMS: o.TTL.Milliseconds(),
		presence: string(text), priority: o.Presence.Priority,
	}
	l := &Lock{store: store, participant: p, replicas: o.WaitReplicas, protocol: scripted{p, o.Format.scripts()}}
	if o.WithoutScripts {
		l.protocol = transactional{p}
	}
	if o.Shared != nil {
		if err := o.Shared.claim(o.Key); err != nil {
			return nil, err
		}
		l.leave = func() { o.Shared.free(o.Key) }
		// A transaction watches keys, which is a state of its connection. WAIT is about
		// what was written on its own connection, and holds up all others.
		if !o.WithoutScripts && o.WaitReplicas == 0 && store.cluster == nil {
			l.shared = o.Shared
		}
	}
	return l, nil
}

// participant is what every protocol needs to know of the node and its lock.
type participant struct {
	keys     keys
	nodeID   string
	ttlMS    int64
	presence string // a JSON object
	priority int
}

// present writes that the node is there, at a time of Redis' clock in ms.
func (p participant) present(state string, now int64) command {
	text := p.presence[:len(p.presence)-1] + `,"state":"` + state + `","seen_ms":` + strconv.FormatInt(now, 10) + "}"
	return command{"HSET", []any{p.keys.nodes(), p.nodeID, text}}
}

// preference writes that the node, if alive, goes before those of a lower priority.
func (p participant) preference(now int64) command {
	return command{"HSET", []any{p.keys.control(), p.keys.priority(p.nodeID), fmt.Sprintf("%d %d", p.priority, now)}}
}

// Acquire implements elector.Lock.
func (l *Lock) Acquire(ctx context.Context, c elector.Candidate) (elector.Answer, error) {
	if c.Polling && l.held.word == "held" && heartbeat.Boottime() < l.until {
		sent := heartbeat.Boottime()
		left, err := l.look(ctx, c)
		if err != nil {
			return elector.Answer{}, err // and what was known of the lease is known still
		}
		if left != 0 {
			return l.stillHeld(sent, left), nil
		}
	}
	sent := heartbeat.Boottime()
	v, err := l.acquire(ctx, c)
	if err != nil {
		return elector.Answer{}, fmt.Errorf("acquire lock %q: %w", l.keys.lock(), l.store.misfit(ctx, l.keys, err))
	}
	l.told.Store(int64(heartbeat.Boottime()))
	l.held = v
	left := leaseLeft(v.left)
	switch v.word {
	case "won":
		l.until = 0
		return elector.Answer{Outcome: elector.Won, Epoch: v.epoch}, nil
	case "held":
		l.seen.early = ""
		l.seen.leaseMS = max(l.seen.leaseMS, v.leaseMS)
		if v.leaseMS > 0 { // what other programs do with their locks is their own affair
			l.seen.early = "lease"
		}
		return l.stillHeld(sent, left), nil
	case "quarantine":
		l.until, l.seen.early = sent.Add(left), v.word
	}
	return elector.Answer{Outcome: elector.Wait, Reason: v.detail, Left: left, Epoch: v.epoch}, nil
}

// look asks by one plain command, instead of a script of many, how much of the
// lease is left: standbys are many. 0 says that it takes more: the lock is free, or
// lasts for longer than a lease of ours can.
func (l *Lock) look(ctx context.Context, c elector.Candidate) (time.Duration, error) {
	left, err := redis.Int64(l.do(ctx, func(conn redis.Conn) (any, error) {
		if l.untold() {
			changed, err := l.tell(ctx, conn, c)
			if err != nil || changed {
				return int64(0), err
			}
		}
		return redis.DoContext(conn, ctx, "PTTL", l.keys.lock())
	}))
	if err != nil {
		return 0, fmt.Errorf("look at lock %q: %w", l.keys.lock(), err)
	}
	if left != noExpiry && left <= 0 || l.held.leaseMS > 0 && (left == noExpiry || left > l.held.leaseMS) {
		return 0, nil
	}
	return leaseLeft(left), nil
}

// untold reports whether it is time to tell the others that this node is there.
func (l *Lock) untold() bool {
	return heartbeat.Boottime().Sub(heartbeat.Instant(l.told.Load())) >= presenceInterval
}

// tell writes the presence of a standby. It reports whether another term has begun
// without a hint of it.
func (l *Lock) tell(ctx context.Context, conn redis.Conn, c elector.Candidate) (changed bool, err error) {
	clock, err := redis.Int64s(redis.DoContext(conn, ctx, "TIME"))
	if err != nil || len(clock) != 2 {
		return false, fmt.Errorf("redis TIME: unexpected reply %v: %w", clock, err)
	}
	now := clock[0]*1000 + clock[1]/1000
	commands := []command{l.present("standby", now)}
	if l.priority > 0 && !c.Observer {
		commands = append(commands, l.preference(now))
	}
	for _, cmd := range commands {
		if _, err := redis.DoContext(conn, ctx, cmd.name, cmd.args...); err != nil {
			return false, err
		}
	}
	l.told.Store(int64(heartbeat.Boottime()))
	epoch, err := redis.String(redis.DoContext(conn, ctx, "HGET", l.keys.term(), "epoch"))
	if err != nil && !errors.Is(err, redis.ErrNil) {
		return false, err
	}
	return epoch != strconv.FormatInt(l.held.epoch, 10), nil
}

// stillHeld is the answer while the lease that was seen last has not ended: the
// holder is the same. What was left when Redis answered is counted from the sending:
// a lease that seems to last longer than it does seems to have vanished.
func (l *Lock) stillHeld(sent heartbeat.Instant, left time.Duration) elector.Answer {
	l.until = sent.Add(left)
	return elector.Answer{Outcome: elector.Held, Holder: l.held.detail, Epoch: l.held.epoch, Left: left}
}

// haste is how much earlier than it should a lease may seem to end: clocks run a
// little differently.
const haste = 50 * time.Millisecond

// remembered is what the node has seen, as of now.
func (l *Lock) remembered() memory {
	m := l.seen
	if l.until.Sub(heartbeat.Boottime()) <= haste+milliseconds(m.leaseMS)/100 {
		m.early = ""
	}
	return m
}

func (l *Lock) acquire(ctx context.Context, c elector.Candidate) (v verdict, err error) {
	seen := l.remembered()
	_, err = l.do(ctx, func(conn redis.Conn) (any, error) {
		if v, err = l.protocol.acquire(ctx, conn, c, seen); err != nil || v.word != "won" {
			return nil, err
		}
		short := l.awaitReplicas(ctx, conn)
		if short == nil || conn.Err() != nil {
			return nil, short // cut off: nothing can be given back, and the same owner may ask again
		}
		// Not taken as far as we are concerned. Nobody is told: the others would find
		// the replicas missing, too.
		_, err := l.protocol.release(ctx, conn, c.Owner, elector.Handover{Event: string(elector.EventWithdrawn), Reason: short.Error()})
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
		tell := fresh || l.untold() // a server that lost its data has lost this, too
		if order, err = l.protocol.renew(ctx, conn, owner, epoch, fresh, tell); err != nil {
			return nil, err
		}
		if l.renewed = conn; tell {
			l.told.Store(int64(heartbeat.Boottime()))
		}
		return nil, l.awaitReplicas(ctx, conn)
	})
	if err != nil {
		return elector.Order{}, fmt.Errorf("renew lock %q: %w", l.keys.lock(), err)
	}
	return order, nil
}

// Release implements elector.Lock.
func (l *Lock) Release(ctx context.Context, owner string, h elector.Handover) error {
	_, err := l.GiveUp(ctx, owner, h)
	return err
}

// GiveUp is Release that also tells whether the owner held the lock.
func (l *Lock) GiveUp(ctx context.Context, owner string, h elector.Handover) (was bool, err error) {
	_, err = l.do(ctx, func(conn redis.Conn) (any, error) {
		was, err = l.protocol.release(ctx, conn, owner, h)
		return nil, err
	})
	if err != nil {
		return false, fmt.Errorf("release lock %q: %w", l.keys.lock(), err)
	}
	return was, nil
}

// Raise implements elector.Lock. It is asked by a job, so it uses a pooled
// connection: a renewal must not wait for it.
func (l *Lock) Raise(ctx context.Context, owner string, floor int64) (epoch int64, err error) {
	_, err = l.store.run(ctx, l.keys.lock(), func(conn redis.Conn) (any, error) {
		epoch, err = l.protocol.raise(ctx, conn, owner, floor)
		return nil, err
	})
	if err != nil {
		return 0, fmt.Errorf("raise the epoch of lock %q: %w", l.keys.lock(), err)
	}
	return epoch, nil
}

// awaitReplicas waits until enough replicas have what was written on conn. Its
// error leaves open what happens to it: an isolated master keeps what nobody else
// will ever see.
func (l *Lock) awaitReplicas(ctx context.Context, conn redis.Conn) error {
	if l.replicas == 0 {
		return nil
	}
	patience := time.Second
	if deadline, ok := ctx.Deadline(); ok {
		patience = time.Until(deadline) / 2 // the rest is for the answer, and for giving the lock back
	}
	got, err := redis.Int(redis.DoContext(conn, ctx, "WAIT", l.replicas, max(patience.Milliseconds(), 1)))
	if err == nil && got < l.replicas {
		err = fmt.Errorf("%d of the %d replicas that election.wait_replicas asks for have the lock: are they connected to the master?", got, l.replicas)
	}
	return err
}

// Leave takes the node off the list of nodes, when it shuts down.
func (l *Lock) Leave(ctx context.Context) error {
	_, err := l.do(ctx, func(conn redis.Conn) (any, error) {
		if _, err := redis.DoContext(conn, ctx, "HDEL", l.keys.control(), l.keys.priority(l.nodeID)); err != nil {
			return nil, err
		}
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
	if l.leave != nil {
		l.leave()
		l.leave = nil
	}
}

// do runs one command on the lock's connection, dialling if there is none. A
// connection on which anything went wrong is not used again: a late reply must
// not be taken for that of the next command, and a server that refuses may have
// been replaced by another under the same name.
func (l *Lock) do(ctx context.Context, command func(redis.Conn) (any, error)) (any, error) {
	if l.shared != nil {
		reply, err := command(l.shared.conn())
		return reply, explain(err)
	}
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
