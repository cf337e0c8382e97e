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

// nodeInfoInterval is the time between a node's heartbeats in the list of nodes. Two such intervals and the longest poll together are
// shorter than [GoneAfter].
const nodeInfoInterval = 25 * time.Second

// NodeInfo is a node's entry in the list of nodes. The command that writes the entry adds the node's state and the time.
type NodeInfo struct {
	Version    string `json:"version"`
	ConfigHash string `json:"config_hash"`
	Address    string `json:"address"` // the address of the node's status page
	// Priority decides which of the live nodes gets the lock: the node with the highest Priority.
	Priority int `json:"priority,omitempty"`
	// Observer means that the node never leads.
	Observer bool `json:"observer,omitempty"`
	// Jobs are the names of the jobs under this lock in the node's configuration. Nil means that the node's version does not report them.
	Jobs []string `json:"jobs"`
	// ConfigMS is when that configuration came into force, in ms of the node's clock. 0 means that the node does not report it.
	ConfigMS int64 `json:"config_ms,omitempty"`
	// Reluctant means that an order made the node step down a short time ago. It does not get a lock only for balance.
	Reluctant bool `json:"reluctant,omitempty"`
	// Instance differs between processes with the same id. Twin is the instance of another live process with this node's id, or "".
	Instance string `json:"instance,omitempty"`
	Twin     string `json:"twin,omitempty"`
	// Ending names the work that must end before a leader gives up the lock; "" for others.
	Ending string `json:"ending,omitempty"`
	// ClockMS is the difference between the node's clock and Redis' clock, in ms. It is positive if the node's clock is ahead.
	ClockMS int64 `json:"clock_ms,omitempty"`
}

// participant describes one node's part in one election.
type participant struct {
	keys     script.Keys
	nodeID   string
	ttlMS    int64
	nodeInfo *atomic.Pointer[string] // a JSON object
	priority int
}

// SetNodeInfo replaces the node's entry in the list of nodes. The next renewal or poll writes the entry. The priority with which the
// node campaigns stays the same.
func (l *Lock) SetNodeInfo(p NodeInfo) {
	text, err := json.Marshal(p)
	if err != nil {
		return // texts and numbers always encode
	}
	l.nodeInfo.Store(new(string(text)))
}

// othersEntry reports whether the entry under this node's id in the list of nodes belongs to another process.
func (p participant) othersEntry(ctx context.Context, conn redis.Conn) (bool, error) {
	var own, listed NodeInfo
	if err := json.Unmarshal([]byte(*p.nodeInfo.Load()), &own); err != nil || own.Instance == "" {
		return false, nil //nolint:nilerr // without an instance there is no twin to protect
	}
	text, err := redis.Bytes(redis.DoContext(conn, ctx, "HGET", p.keys.Nodes(), p.nodeID))
	if err != nil && !errors.Is(err, redis.ErrNil) {
		return false, err
	}
	_ = json.Unmarshal(text, &listed) // the list may have no entry
	return own.Twin != "" || listed.Instance != "" && listed.Instance != own.Instance, nil
}

// present returns the command that writes the node's entry. The argument now is a time of Redis' clock, in ms.
func (p participant) present(state string, now int64) redisconn.Command {
	text := strings.TrimSuffix(*p.nodeInfo.Load(), "}") + `,"state":"` + state + `","seen_ms":` + strconv.FormatInt(now, 10) + "}"
	return redisconn.Cmd("HSET", p.keys.Nodes(), p.nodeID, text)
}

// preference returns the command that writes the node's priority.
func (p participant) preference(now int64) redisconn.Command {
	return redisconn.Cmd("HSET", p.keys.Control(), p.keys.Priority(p.nodeID), fmt.Sprintf("%d %d", p.priority, now))
}

// writtenInfo is the node's entry that was written last, and the time when it was written.
type writtenInfo struct {
	text *string // the participant's pointer at that time; a newer entry has another pointer
	at   heartbeat.Instant
}

// nodeInfoDue reports whether the node must write its heartbeat now.
func (l *Lock) nodeInfoDue() bool {
	t := l.written.Load()
	return t == nil || t.text != l.nodeInfo.Load() || heartbeat.Boottime().Sub(t.at) >= nodeInfoInterval
}

// nodeInfoWritten records that this text was written as the node's entry.
func (l *Lock) nodeInfoWritten(text *string) {
	l.written.Store(&writtenInfo{text, heartbeat.Boottime()})
}

// writeNodeInfo writes the entry of a standby. The result changed is true if another term has begun, although no hint has announced
// it.
func (l *Lock) writeNodeInfo(ctx context.Context, conn redis.Conn, c elector.Candidate) (changed bool, err error) {
	text := l.nodeInfo.Load()
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
	l.nodeInfoWritten(text)
	epoch, err := redis.String(redis.DoContext(conn, ctx, "HGET", l.keys.Term(), "epoch"))
	if err != nil && !errors.Is(err, redis.ErrNil) {
		return false, err
	}
	return epoch != strconv.FormatInt(l.held.epoch, 10), nil
}
