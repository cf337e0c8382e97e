package redislock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"baton/internal/elector"
	"baton/internal/heartbeat"
	"baton/internal/redisconn"
	"baton/internal/redislock/script"

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
	// Reluctant: the node has stepped down by order lately, and shall not be given a lock
	// only to spread the work.
	Reluctant bool `json:"reluctant,omitempty"`
	// Instance tells one process from another of the same id. Twin is such another one, as
	// long as it tells of itself; "" without.
	Instance string `json:"instance,omitempty"`
	Twin     string `json:"twin,omitempty"`
	// Ending is what is waited for by a leader that gives the lead up; "" for others.
	Ending string `json:"ending,omitempty"`
	// ClockMS is how far the node's clock is ahead of Redis'.
	ClockMS int64 `json:"clock_ms,omitempty"`
}

// participant is what every protocol needs to know of the node and its lock.
type participant struct {
	keys     script.Keys
	nodeID   string
	ttlMS    int64
	presence *atomic.Pointer[string] // a JSON object
	priority int
}

// Present says what else to tell of the node from the next occasion on, which is soon.
// The priority stays.
func (l *Lock) Present(p Presence) {
	text, err := json.Marshal(p)
	if err != nil {
		return // texts and numbers always encode
	}
	l.presence.Store(new(string(text)))
}

// othersEntry reports whether the node's entry in the list is that of another process.
func (p participant) othersEntry(ctx context.Context, conn redis.Conn) (bool, error) {
	var own, listed Presence
	if err := json.Unmarshal([]byte(*p.presence.Load()), &own); err != nil || own.Instance == "" {
		return false, nil //nolint:nilerr // a lock that tells nothing of its process has no other to mind
	}
	text, err := redis.Bytes(redis.DoContext(conn, ctx, "HGET", p.keys.Nodes(), p.nodeID))
	if err != nil && !errors.Is(err, redis.ErrNil) {
		return false, err
	}
	_ = json.Unmarshal(text, &listed) // there may be none
	return own.Twin != "" || listed.Instance != "" && listed.Instance != own.Instance, nil
}

// present writes that the node is there, at a time of Redis' clock in ms.
func (p participant) present(state string, now int64) redisconn.Command {
	text := strings.TrimSuffix(*p.presence.Load(), "}") + `,"state":"` + state + `","seen_ms":` + strconv.FormatInt(now, 10) + "}"
	return redisconn.Cmd("HSET", p.keys.Nodes(), p.nodeID, text)
}

// preference writes that the node, if alive, goes before those of a lower priority.
func (p participant) preference(now int64) redisconn.Command {
	return redisconn.Cmd("HSET", p.keys.Control(), p.keys.Priority(p.nodeID), fmt.Sprintf("%d %d", p.priority, now))
}

// toldPresence is what was last written of the node, and when.
type toldPresence struct {
	text *string // as the participant had it: one that has come since differs
	at   heartbeat.Instant
}

// untold reports whether it is time to tell the others of this node.
func (l *Lock) untold() bool {
	t := l.told.Load()
	return t == nil || t.text != l.presence.Load() || heartbeat.Boottime().Sub(t.at) >= presenceInterval
}

// hasTold notes that a text was written that was the node's presence when the request began.
func (l *Lock) hasTold(text *string) { l.told.Store(&toldPresence{text, heartbeat.Boottime()}) }

// tell writes the presence of a standby. It reports whether another term has begun
// without a hint of it.
func (l *Lock) tell(ctx context.Context, conn redis.Conn, c elector.Candidate) (changed bool, err error) {
	text := l.presence.Load()
	clock, err := redis.Int64s(redis.DoContext(conn, ctx, "TIME"))
	if err != nil || len(clock) != 2 {
		return false, fmt.Errorf("redis TIME: unexpected reply %v: %w", clock, err)
	}
	now := clock[0]*1000 + clock[1]/1000
	commands := []redisconn.Command{l.present("standby", now)}
	if l.priority > 0 && !c.Observer {
		commands = append(commands, l.preference(now))
	}
	for _, cmd := range commands {
		if _, err := redis.DoContext(conn, ctx, cmd.Name, cmd.Args...); err != nil {
			return false, err
		}
	}
	l.hasTold(text)
	epoch, err := redis.String(redis.DoContext(conn, ctx, "HGET", l.keys.Term(), "epoch"))
	if err != nil && !errors.Is(err, redis.ErrNil) {
		return false, err
	}
	return epoch != strconv.FormatInt(l.held.epoch, 10), nil
}
