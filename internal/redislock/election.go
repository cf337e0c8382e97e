package redislock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"baton/internal/elector"
	"baton/internal/redisconn"
	"baton/internal/redislock/script"

	"github.com/gomodule/redigo/redis"
)

// ErrNoLeader means that there is no leader to step down.
var ErrNoLeader = errors.New("no node leads")

// Election reads the state of an election and sends orders to its leader. It is no candidate. Commands and status pages use it.
type Election struct {
	store  *redisconn.Store
	keys   script.Keys
	format script.Format
}

// NewElection returns the Election of a lock key in the format f.
func NewElection(store *redisconn.Store, lockKey string, f script.Format) *Election {
	return &Election{store: store, keys: script.KeysOf(lockKey), format: f}
}

// ElectionState is the state of an election at one moment, by Redis' clock.
type ElectionState struct {
	Now    time.Time
	Owner  string        // "" when no client holds the lock
	Left   time.Duration // the rest of the lease; negative if the lock does not expire
	Leader string        // the node that leads; "" if the lock is free, or a foreign client holds it
	Epoch  int64         // the epoch of the last term, which may be over
	Forged bool          // the stored epoch is invalid: see [elector.ErrEpoch]
	Since  time.Time     // when that term began
	TTL    time.Duration
	Held   time.Time // the latest time until which that term had the lease; zero: unknown
	Nodes  []Node
	Cut    bool    // the list of nodes is too long: Nodes is a part of it
	Events []Event // newest first
	// Forbidden means that this user of Redis may not read the election. The other fields are empty then.
	Forbidden bool
	Control
}

// Node is an entry of the list of nodes: a node's last heartbeat.
type Node struct {
	ID string `json:"-"`
	NodeInfo
	State  string `json:"state"`
	SeenMS int64  `json:"seen_ms"`
}

// Seen returns the time of the node's last heartbeat, by Redis' clock.
func (n Node) Seen() time.Time { return timeOf(n.SeenMS) }

// Event is one entry of the election's history.
type Event struct {
	At     time.Time
	Event  string
	NodeID string
	Epoch  int64
	Code   elector.Code // the reason, if Event alone is not enough
	Reason string
	Over   time.Time // the time when the lease of an expired term ended; zero: unknown
}

// State reads the whole state in one round trip. The argument events is the number of events to read, beginning with the newest.
func (e *Election) State(ctx context.Context, events int) (ElectionState, error) {
	k := e.keys
	conn, err := e.store.Conn(ctx, k.Lock())
	if err != nil {
		return ElectionState{}, err
	}
	defer conn.Close() // it goes back to the pool
	commands := []redisconn.Command{
		redisconn.Cmd("TIME"), e.askHolder(), redisconn.Cmd("PTTL", k.Lock()), redisconn.Cmd("HGETALL", k.Term()),
		askNodes(k.Nodes(), "0"),
		redisconn.Cmd("XREVRANGE", k.Events(), "+", "-", "COUNT", events), redisconn.Cmd("HGETALL", k.Control()),
		redisconn.Cmd("PTTL", k.Quarantine()),
	}
	if err := redisconn.SendAll(conn, commands...); err != nil {
		return ElectionState{}, fmt.Errorf("read the election of %q: %w", k.Lock(), err)
	}
	replies, err := redisconn.ReceiveAll(ctx, conn)
	if err != nil {
		return ElectionState{}, fmt.Errorf("read the election of %q: %w", k.Lock(), redisconn.Explain(err))
	}
	for i, r := range replies {
		if err, ok := r.(redis.Error); ok {
			return ElectionState{}, fmt.Errorf("read the election of %q: %s: %w", k.Lock(), commands[i], redisconn.Explain(err))
		}
	}
	nodes, cut, err := moreNodes(ctx, conn, k.Nodes(), replies[4])
	if err != nil {
		return ElectionState{}, fmt.Errorf("read the nodes of the election of %q: %w", k.Lock(), redisconn.Explain(err))
	}
	replies[4] = nodes
	p, err := decodeState(replies)
	p.Cut = cut
	return p, err
}

// baton reads the list of nodes in pages, because a list with a million forged nodes would block Redis for seconds. It reads at most
// nodesPages pages.
const (
	nodesPage  = 1000
	nodesPages = 10
)

func askNodes(key, cursor string) redisconn.Command {
	return redisconn.Cmd("HSCAN", key, cursor, "COUNT", nodesPage)
}

// moreNodes reads the pages after the first page, and returns the fields and values of all pages. The argument reply is the first
// page. The result cut is true if the list has more pages than moreNodes reads.
func moreNodes(ctx context.Context, conn redis.Conn, key string, reply any) (all []any, cut bool, err error) {
	for page := 1; ; page++ {
		var cursor string
		var fields []any
		parts, err := redis.Values(reply, nil)
		if err == nil {
			_, err = redis.Scan(parts, &cursor, &fields)
		}
		if err != nil {
			return nil, false, err
		}
		all = append(all, fields...)
		if cursor == "0" || page == nodesPages {
			return all, cursor != "0", nil
		}
		next := askNodes(key, cursor)
		if reply, err = redis.DoContext(conn, ctx, next.Name, next.Args...); err != nil {
			return nil, false, err
		}
	}
}

func decodeState(replies []any) (ElectionState, error) {
	var p ElectionState
	var err error
	if p.Now, err = redisconn.Time(replies[0]); err != nil {
		return p, err
	}
	if p.Owner, err = ownerOf(replies[1]); err != nil {
		return p, err
	}
	left, err := redis.Int64(replies[2], nil)
	if err != nil {
		return p, err
	}
	p.Left = milliseconds(left)
	term, err := redis.StringMap(replies[3], nil)
	if err != nil {
		return p, err
	}
	p.Epoch = number(term["epoch"])
	_, counts := epochOf(term["epoch"])
	p.Forged = term["epoch"] != "" && !counts || !Plausible(max(p.Epoch, number(term["floor"])), 0, p.Now.UnixMilli())
	p.Since = timeOf(number(term["since"]))
	p.TTL = milliseconds(number(term["ttl_ms"]))
	p.Held = timeIn(term["held_until"])
	if p.Owner != "" && p.Owner == term["owner"] {
		p.Leader = term["node_id"]
	}
	if p.Nodes, err = decodeNodes(replies[4]); err != nil {
		return p, err
	}
	if p.Events, err = decodeEvents(replies[5]); err != nil {
		return p, err
	}
	control, err := redis.StringMap(replies[6], nil)
	if err != nil {
		return p, err
	}
	quarantine, err := redis.Int64(replies[7], nil)
	p.Control = decodeControl(control, quarantine, p.Owner, p.Now)
	return p, err
}

// redissonThread is the end of a holder's name in an RLock. Redisson names a client and its thread there, and all our terms use the
// same thread.
const redissonThread = ":1"

// ownerOf returns the owner of the lock. The argument reply is the reply to GET of the lock key or, for the Redisson format, to
// HKEYS.
func ownerOf(reply any) (string, error) {
	if fields, ok := reply.([]any); ok {
		if len(fields) == 0 {
			return "", nil
		}
		owner, err := redis.String(fields[0], nil)
		return strings.TrimSuffix(owner, redissonThread), err
	}
	owner, err := redis.String(reply, nil)
	if errors.Is(err, redis.ErrNil) {
		return "", nil
	}
	return owner, err
}

func decodeNodes(reply any) ([]Node, error) {
	texts, err := redis.StringMap(reply, nil)
	if err != nil {
		return nil, err
	}
	nodes := make([]Node, 0, len(texts))
	for id, text := range texts {
		n := Node{ID: id}
		if err := json.Unmarshal([]byte(text), &n); err != nil {
			n.State = "unreadable" // another version or program wrote the entry; it is shown, and causes no error
		}
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b Node) int { return strings.Compare(a.ID, b.ID) })
	return nodes, nil
}

func decodeEvents(reply any) ([]Event, error) {
	entries, err := redis.Values(reply, nil)
	if err != nil && !errors.Is(err, redis.ErrNil) { // nil is the answer to COUNT 0
		return nil, err
	}
	events := make([]Event, 0, len(entries))
	for _, entry := range entries {
		id, m, err := redisconn.StreamEntry(entry)
		if err != nil {
			return nil, fmt.Errorf("unexpected entry in the event history: %w", err)
		}
		ms, _, _ := strings.Cut(id, "-")
		events = append(events, Event{At: timeOf(number(ms)), Event: m["event"], NodeID: m["node_id"], Epoch: number(m["epoch"]),
			Code: elector.Code(m["code"]), Reason: m["reason"], Over: timeIn(m["over_ms"])})
	}
	return events, nil
}

// number reads a number that our own scripts have written. It returns 0 for any other text.
func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// timeIn reads a time in ms that our own scripts wrote. It returns zero for any other text.
func timeIn(s string) time.Time {
	if n := number(s); n > 0 {
		return timeOf(n)
	}
	return time.Time{}
}

// Forget removes nodes from the list of nodes if their last heartbeat is earlier than the time in the argument before.
func (e *Election) Forget(ctx context.Context, nodes []Node, before time.Time) error {
	listed, control := redis.Args{e.keys.Nodes()}, redis.Args{e.keys.Control()}
	for _, n := range nodes {
		if n.Seen().Before(before) {
			listed = listed.Add(n.ID)
			control = control.Add(e.keys.Priority(n.ID), e.keys.CoolDown(n.ID))
		}
	}
	if len(listed) == 1 {
		return nil
	}
	_, err := e.store.Run(ctx, e.keys.Lock(), func(conn redis.Conn) (any, error) {
		if err := conn.Send("HDEL", control...); err != nil {
			return nil, err
		}
		return redis.DoContext(conn, ctx, "HDEL", listed...)
	})
	return err
}
