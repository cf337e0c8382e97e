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

// presenceInterval is the interval of a node's heartbeat in the list of nodes. Together with
// the longest wait between two polls it is shorter than [GoneAfter].
const presenceInterval = 25 * time.Second

// Presence is a node's entry in the list of nodes. State and time are added when it is written.
type Presence struct {
	Version    string `json:"version"`
	ConfigHash string `json:"config_hash"`
	Address    string `json:"address"` // of its status page
	// Priority: of live nodes the one with the highest goes first.
	Priority int `json:"priority,omitempty"`
	// Observer: the node never leads.
	Observer bool `json:"observer,omitempty"`
	// Jobs are the names of the jobs that the node's configuration has under the lock. Nil: the node is of a
	// version that does not say.
	Jobs []string `json:"jobs"`
	// ConfigMS is since when that configuration is in force, in ms of the node's clock; 0: not said.
	ConfigMS int64 `json:"config_ms,omitempty"`
	// Reluctant: the node stepped down by order a short time ago, and is not given a lock
	// for balance alone.
	Reluctant bool `json:"reluctant,omitempty"`
	// Instance distinguishes processes of the same id. Twin is the instance of another live
	// process with this node's id; "" without.
	Instance string `json:"instance,omitempty"`
	Twin     string `json:"twin,omitempty"`
	// Ending names the work that a leader waits for before it gives up the lock; "" for others.
	Ending string `json:"ending,omitempty"`
	// ClockMS is by how many ms the node's clock is ahead of Redis'.
	ClockMS int64 `json:"clock_ms,omitempty"`
}

// participant is one node's part in one election.
type participant struct {
	keys     script.Keys
	nodeID   string
	ttlMS    int64
	presence *atomic.Pointer[string] // a JSON object
	priority int
}

// Present replaces the presence: the next renewal or poll writes it. The priority stays.
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
		return false, nil //nolint:nilerr // without an instance there is no twin to protect
	}
	text, err := redis.Bytes(redis.DoContext(conn, ctx, "HGET", p.keys.Nodes(), p.nodeID))
	if err != nil && !errors.Is(err, redis.ErrNil) {
		return false, err
	}
	_ = json.Unmarshal(text, &listed) // there may be none
	return own.Twin != "" || listed.Instance != "" && listed.Instance != own.Instance, nil
}

// present writes the node's presence, at a time of Redis' clock in ms.
func (p participant) present(state string, now int64) redisconn.Command {
	text := strings.TrimSuffix(*p.presence.Load(), "}") + `,"state":"` + state + `","seen_ms":` + strconv.FormatInt(now, 10) + "}"
	return redisconn.Cmd("HSET", p.keys.Nodes(), p.nodeID, text)
}

// preference writes the node's priority.
func (p participant) preference(now int64) redisconn.Command {
	return redisconn.Cmd("HSET", p.keys.Control(), p.keys.Priority(p.nodeID), fmt.Sprintf("%d %d", p.priority, now))
}

// writtenPresence is the presence that was written last, and when.
type writtenPresence struct {
	text *string // the participant's pointer: a newer presence has another one
	at   heartbeat.Instant
}

// presenceDue reports whether it is time for this node's heartbeat.
func (l *Lock) presenceDue() bool {
	t := l.written.Load()
	return t == nil || t.text != l.presence.Load() || heartbeat.Boottime().Sub(t.at) >= presenceInterval
}

// presenceWritten records the text that was the node's presence when the request began.
func (l *Lock) presenceWritten(text *string) {
	l.written.Store(&writtenPresence{text, heartbeat.Boottime()})
}

// writePresence writes the presence of a standby. It reports whether another term has begun
// although no hint of it arrived.
func (l *Lock) writePresence(ctx context.Context, conn redis.Conn, c elector.Candidate) (changed bool, err error) {
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
	l.presenceWritten(text)
	epoch, err := redis.String(redis.DoContext(conn, ctx, "HGET", l.keys.Term(), "epoch"))
	if err != nil && !errors.Is(err, redis.ErrNil) {
		return false, err
	}
	return epoch != strconv.FormatInt(l.held.epoch, 10), nil
}
