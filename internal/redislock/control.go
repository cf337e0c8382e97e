package redislock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"baton/internal/elector"
	"baton/internal/redisconn"
	"baton/internal/redislock/script"

	"github.com/gomodule/redigo/redis"
)

// Control contains the orders and restrictions that are in force in an election. Redis' clock decides whether they are in force.
type Control struct {
	// Paused means that no node may lead. It is nil if the election is not paused.
	Paused *Pause
	// Quarantine is how long no new owner may win, because Redis has restarted, failed over or lost its data. It is 0 without a quarantine.
	Quarantine time.Duration
	// ReservedFor is the only node that may take the free lock; "" means any node.
	ReservedFor  string
	ReservedLeft time.Duration
	// StepDown is the reason why the current leader has been ordered to step down, until it has done so; "" without an order.
	StepDown string
	// CoolDowns has the nodes that do not campaign for a while, by their ids.
	CoolDowns map[string]CoolDown
}

// Pause says since when no node may lead, and why.
type Pause struct {
	At     time.Time
	Reason string // "by alice: upgrade"
}

// CoolDown says for how much longer a node does not campaign after an abdication, and why.
type CoolDown struct {
	Left   time.Duration
	Reason string
}

// These are the events that operators cause, in the words of the event history.
const (
	eventPaused  = "paused"
	eventResumed = "resumed"
)

// decodeControl reads the control hash. The argument quarantine is the reply to PTTL for the key of the quarantine.
func decodeControl(fields map[string]string, quarantine int64, owner string, now time.Time) Control {
	c := Control{Quarantine: max(milliseconds(quarantine), 0), CoolDowns: map[string]CoolDown{}}
	if at, ok := fields["paused_at"]; ok {
		c.Paused = &Pause{At: timeOf(number(at)), Reason: fields["paused_reason"]}
	}
	if left := time.UnixMilli(number(fields["reserved_until"])).Sub(now); left > 0 {
		c.ReservedFor, c.ReservedLeft = fields["reserved_for"], left
	}
	if owner != "" && fields["stepdown_owner"] == owner {
		c.StepDown = fields["stepdown_reason"]
	}
	for name, value := range fields {
		node, ok := strings.CutPrefix(name, script.Keys{}.CoolDown(""))
		until, reason, _ := strings.Cut(value, " ")
		if left := time.UnixMilli(number(until)).Sub(now); ok && left > 0 {
			c.CoolDowns[node] = CoolDown{Left: left, Reason: reason}
		}
	}
	return c
}

// Pause keeps every node from leading until Resume, even after restarts. It wakes the leader, which steps down. It returns the pause
// that was already in force, or nil. A second pause only replaces the reason.
func (e *Election) Pause(ctx context.Context, reason string) (before *Pause, err error) {
	err = e.change(ctx, "pause", func(s controlState) ([]redisconn.Command, []redisconn.Command, error) {
		before = s.Paused
		at := s.now.UnixMilli()
		if before != nil {
			at = before.At.UnixMilli()
		}
		return []redisconn.Command{redisconn.Cmd("HSET", e.keys.Control(), "paused_at", at, "paused_reason", reason)},
			append(e.eventEntry(eventPaused, s.epoch, reason), e.wakeUp("control")), nil
	})
	return before, err
}

// Resume ends a pause. Standbys then try to get the lock immediately. It returns the pause that it ended, or nil if there was none.
func (e *Election) Resume(ctx context.Context, reason string) (was *Pause, err error) {
	err = e.change(ctx, "resume", func(s controlState) ([]redisconn.Command, []redisconn.Command, error) {
		if was = s.Paused; was == nil {
			return nil, nil, nil
		}
		return []redisconn.Command{redisconn.Cmd("HDEL", e.keys.Control(), "paused_at", "paused_reason")},
			append(e.eventEntry(eventResumed, s.epoch, reason), e.wakeUp("released")), nil
	})
	return was, err
}

// StepDown orders the current leader to step down. If the argument to is not empty, the node with this name gets the lock. It returns the
// owner and the node of the present term, or ErrNoLeader. It does not wait for the step-down.
func (e *Election) StepDown(ctx context.Context, to, reason string) (owner, nodeID string, err error) {
	err = e.change(ctx, "ask the leader to step down from", func(s controlState) ([]redisconn.Command, []redisconn.Command, error) {
		if owner, nodeID = s.holder, s.node; owner == "" {
			return nil, nil, ErrNoLeader
		}
		writes, attempts := e.stepDown(owner, elector.Order{To: to, Reason: reason})
		return writes, attempts, nil
	})
	return owner, nodeID, err
}

// StepDownOwner orders the leader to step down if its term has this owner. It returns ErrNoLeader if that owner does not hold the lock.
func (e *Election) StepDownOwner(ctx context.Context, owner string, o elector.Order) error {
	return e.change(ctx, "ask the leader to step down from", func(s controlState) ([]redisconn.Command, []redisconn.Command, error) {
		if s.holder != owner {
			return nil, nil, ErrNoLeader
		}
		writes, attempts := e.stepDown(owner, o)
		return writes, attempts, nil
	})
}

func (e *Election) stepDown(owner string, o elector.Order) (writes, attempts []redisconn.Command) {
	return []redisconn.Command{redisconn.Cmd("HSET", e.keys.Control(), "stepdown_owner", owner, "stepdown_to", o.To, "stepdown_reason",
			o.Reason, "stepdown_code", string(o.Code))},
		[]redisconn.Command{e.wakeUp("control")}
}

// SetCoolDown records that a node does not campaign for the duration d, so that the other nodes do not hand the lock to it. The
// duration zero ends the cool-down.
func (e *Election) SetCoolDown(ctx context.Context, nodeID string, d time.Duration, reason string) error {
	return e.change(ctx, "record the cool-down of a node for", func(s controlState) ([]redisconn.Command, []redisconn.Command, error) {
		if d <= 0 {
			return []redisconn.Command{redisconn.Cmd("HDEL", e.keys.Control(), e.keys.CoolDown(nodeID))}, nil, nil
		}
		until := fmt.Sprintf("%d %s", s.now.Add(d).UnixMilli(), reason)
		return []redisconn.Command{redisconn.Cmd("HSET", e.keys.Control(), e.keys.CoolDown(nodeID), until)}, nil, nil
	})
}

// controlState is the part of the election's state that decides whether a change of the control hash is allowed.
type controlState struct {
	Control
	now    time.Time
	holder string // the lock's owner, "" for none
	node   string // the node that leads; "" if a foreign client holds the lock
	epoch  int64
}

// change calls the function decide, which returns commands. It sends the commands in the result writes in one transaction. If the
// leader has changed in the meantime, change calls decide again. It uses no script, because a server may forbid scripts. Redis may
// refuse the commands in the result attempts (history, wake-ups).
func (e *Election) change(
	ctx context.Context, doing string, decide func(controlState) (writes, attempts []redisconn.Command, err error),
) error {
	_, err := e.store.Run(ctx, e.keys.Lock(), func(conn redis.Conn) (any, error) {
		for range conflicts {
			s, err := e.watchLeader(ctx, conn)
			if err != nil {
				return nil, err
			}
			writes, attempts, err := decide(s)
			if err != nil {
				_, unwatch := redis.DoContext(conn, ctx, "UNWATCH")
				return nil, errors.Join(err, unwatch)
			}
			done, err := exec(ctx, conn, writes)
			if err != nil {
				return nil, err
			}
			if done {
				return nil, attempt(ctx, conn, attempts)
			}
		}
		return nil, errConflict
	})
	if err != nil && !errors.Is(err, ErrNoLeader) {
		return fmt.Errorf("%s lock %q: %w", doing, e.keys.Lock(), err)
	}
	return err
}

// watchLeader reads the state on which a change of the control hash depends. It WATCHes only the lock key, because every standby
// keeps writing to the control hash.
func (e *Election) watchLeader(ctx context.Context, conn redis.Conn) (s controlState, err error) {
	k := e.keys
	err = redisconn.SendAll(conn, redisconn.Cmd("WATCH", k.Lock()), redisconn.Cmd("TIME"), e.askHolder(),
		redisconn.Cmd("HGETALL", k.Term()), redisconn.Cmd("HGETALL", k.Control()))
	if err != nil {
		return s, err
	}
	replies, err := redisconn.ReceiveAll(ctx, conn)
	if err != nil {
		return s, err
	}
	for _, r := range replies {
		if refusal, ok := r.(redis.Error); ok {
			return s, refusal
		}
	}
	if s.now, err = redisconn.Time(replies[1]); err != nil {
		return s, err
	}
	if s.holder, err = ownerOf(replies[2]); err != nil {
		return s, err
	}
	term, termErr := redis.StringMap(replies[3], nil)
	fields, err := redis.StringMap(replies[4], nil)
	s.Control, s.epoch = decodeControl(fields, 0, s.holder, s.now), number(term["epoch"])
	if s.holder == term["owner"] {
		s.node = term["node_id"]
	}
	return s, errors.Join(termErr, err)
}

// askHolder returns the command that reads the lock's owner. The function ownerOf decodes the reply.
func (e *Election) askHolder() redisconn.Command {
	if e.format == script.Redisson {
		return redisconn.Cmd("HKEYS", e.keys.Lock())
	}
	return redisconn.Cmd("GET", e.keys.Lock())
}

// eventEntry returns the command that adds an event to the event history. The entry names no node.
func (e *Election) eventEntry(event string, epoch int64, reason string) []redisconn.Command {
	return []redisconn.Command{redisconn.Cmd("XADD", e.keys.Events(), "MAXLEN", "~", 1000, "*", "event", event, "node_id", "",
		"epoch", epoch, "reason", reason)}
}

// wakeUp returns the command that publishes a hint to all nodes of the election.
func (e *Election) wakeUp(hint string) redisconn.Command {
	return redisconn.Cmd("PUBLISH", e.keys.Wake(), hint)
}
