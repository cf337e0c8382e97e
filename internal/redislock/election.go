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

// Election reads an election and sends orders to its leader. It neither campaigns nor leads.
// Commands and status pages use it.
type Election struct {
	store  *redisconn.Store
	keys   script.Keys
	format script.Format
}

// NewElection gives access to the election of a lock key that has this format.
func NewElection(store *redisconn.Store, lockKey string, f script.Format) *Election {
	return &Election{store: store, keys: script.KeysOf(lockKey), format: f}
}

// Picture is an election at one moment, by Redis' own clock.
type Picture struct {
	Now    time.Time
	Owner  string        // "" when no client holds the lock
	Left   time.Duration // of the lease; negative when the lock has no expiry
	Leader string        // node; "" if the lock is free, or a foreign client holds it
	Epoch  int64         // of the last term, over or not
	Forged bool          // the stored epoch is invalid: see [elector.ErrEpoch]
	Since  time.Time     // when that term began
	TTL    time.Duration
	Held   time.Time // until when that term had the lease at most; zero: not known
	Nodes  []Node
	Cut    bool    // the list of nodes is too long: Nodes is a part of it
	Events []Event // newest first
	// Forbidden: this user of Redis lacks the permission to read the election. Nothing else is known.
	Forbidden bool
	Control
}

// Node is a node's last heartbeat.
type Node struct {
	ID string `json:"-"`
	Presence
	State  string `json:"state"`
	SeenMS int64  `json:"seen_ms"`
}

// Seen is the time of the node's last heartbeat, by Redis' clock.
func (n Node) Seen() time.Time { return timeOf(n.SeenMS) }

// Event is one entry of the election's history.
type Event struct {
	At     time.Time
	Event  string
	NodeID string
	Epoch  int64
	Code   elector.Code // why, where Event does not say it all
	Reason string
	Over   time.Time // of an expired term: when its lease ended; zero: not known
}

// Picture reads everything in one round trip; events is how many of the newest.
func (e *Election) Picture(ctx context.Context, events int) (Picture, error) {
	k := e.keys
	conn, err := e.store.Conn(ctx, k.Lock())
	if err != nil {
		return Picture{}, err
	}
	defer conn.Close() // it goes back to the pool
	commands := []redisconn.Command{
		redisconn.Cmd("TIME"), e.askHolder(), redisconn.Cmd("PTTL", k.Lock()), redisconn.Cmd("HGETALL", k.Term()),
		askNodes(k.Nodes(), "0"),
		redisconn.Cmd("XREVRANGE", k.Events(), "+", "-", "COUNT", events), redisconn.Cmd("HGETALL", k.Control()),
		redisconn.Cmd("PTTL", k.Quarantine()),
	}
	if err := redisconn.SendAll(conn, commands...); err != nil {
		return Picture{}, fmt.Errorf("read the election of %q: %w", k.Lock(), err)
	}
	replies, err := redisconn.ReceiveAll(ctx, conn)
	if err != nil {
		return Picture{}, fmt.Errorf("read the election of %q: %w", k.Lock(), redisconn.Explain(err))
	}
	for i, r := range replies {
		if err, ok := r.(redis.Error); ok {
			return Picture{}, fmt.Errorf("read the election of %q: %s: %w", k.Lock(), commands[i], redisconn.Explain(err))
		}
	}
	nodes, cut, err := moreNodes(ctx, conn, k.Nodes(), replies[4])
	if err != nil {
		return Picture{}, fmt.Errorf("read the nodes of the election of %q: %w", k.Lock(), redisconn.Explain(err))
	}
	replies[4] = nodes
	p, err := decodePicture(replies)
	p.Cut = cut
	return p, err
}

// The list of nodes is read in pages: a list of a million forged nodes would block Redis for seconds. More than nodesPages pages are not
// read.
const (
	nodesPage  = 1000
	nodesPages = 10
)

func askNodes(key, cursor string) redisconn.Command {
	return redisconn.Cmd("HSCAN", key, cursor, "COUNT", nodesPage)
}

// moreNodes reads the pages after the first one, and returns the fields and values of all. It reports whether there are more.
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

func decodePicture(replies []any) (Picture, error) {
	var p Picture
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

// redissonThread is the thread that our terms hold an RLock on.
const redissonThread = ":1"

// ownerOf reads the lock key in either format: GET's reply, or HKEYS'.
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
			n.State = "unreadable" // another version's, or another program's: show it, do not fail on it
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

// number reads a number that our own scripts wrote; 0 for none.
func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// timeIn is a time in ms that our own scripts wrote; zero for none.
func timeIn(s string) time.Time {
	if n := number(s); n > 0 {
		return timeOf(n)
	}
	return time.Time{}
}

// Forget removes nodes from the list whose last heartbeat is older than before.
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
