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

// Control holds the pending orders and restrictions of an election, by Redis' own clock.
type Control struct {
	// Paused: no node may lead; nil if not paused.
	Paused *Pause
	// Quarantine is the time until a new owner may win, after Redis has restarted, failed
	// over or lost its data; 0 without a quarantine.
	Quarantine time.Duration
	// ReservedFor is the node that the free lock is kept for, "" if for none.
	ReservedFor  string
	ReservedLeft time.Duration
	// StepDown is the reason of a step-down that the current leader has not finished; "" without.
	StepDown string
	// CoolDowns are the nodes that do not campaign for a while.
	CoolDowns map[string]CoolDown
}

// Pause keeps every node from leading.
type Pause struct {
	At     time.Time
	Reason string // "by alice: upgrade"
}

// CoolDown keeps a node from campaigning for a while, after an abdication.
type CoolDown struct {
	Left   time.Duration
	Reason string
}

// The events of operators, in the words of the event history.
const (
	eventPaused  = "paused"
	eventResumed = "resumed"
)

// decodeControl reads the control hash, and PTTL's answer for the quarantine.
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

// Pause keeps every node from leading until Resume, across restarts. The leader is woken at
// once and steps down. It returns the pause that was in force, nil without one; a second pause
// only replaces the reason.
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

// Resume ends a pause; standbys ask for the lock at once. It returns the pause, nil
// if there was none.
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

// StepDown asks the current leader to step down, in favour of a named node if to
// is not empty. It returns the term's owner and node, or ErrNoLeader. It does not wait
// for the step-down.
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

// StepDownOwner is StepDown of one term: ErrNoLeader if its owner does not hold the lock.
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

// SetCoolDown records that a node does not campaign for a while, so that the others do not hand
// it the lock. Zero ends that.
func (e *Election) SetCoolDown(ctx context.Context, nodeID string, d time.Duration, reason string) error {
	return e.change(ctx, "stand aside from", func(s controlState) ([]redisconn.Command, []redisconn.Command, error) {
		if d <= 0 {
			return []redisconn.Command{redisconn.Cmd("HDEL", e.keys.Control(), e.keys.CoolDown(nodeID))}, nil, nil
		}
		until := fmt.Sprintf("%d %s", s.now.Add(d).UnixMilli(), reason)
		return []redisconn.Command{redisconn.Cmd("HSET", e.keys.Control(), e.keys.CoolDown(nodeID), until)}, nil, nil
	})
}

// controlState is the state that decides about a change of the control hash.
type controlState struct {
	Control
	now    time.Time
	holder string // the lock's owner, "" for none
	node   string // that leads, "" where a foreign client holds the lock
	epoch  int64
}

// change makes the writes of decide in one transaction, and starts over if the leader changed
// meanwhile. It needs no script: a server may forbid them. The attempts (history, wake-ups)
// may be refused.
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

// watchLeader reads the state for a change and WATCHes the lock key only: every standby keeps
// writing to the control hash.
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

// askHolder is the command that asks for the lock's owner; ownerOf reads the reply.
func (e *Election) askHolder() redisconn.Command {
	if e.format == script.Redisson {
		return redisconn.Cmd("HKEYS", e.keys.Lock())
	}
	return redisconn.Cmd("GET", e.keys.Lock())
}

// eventEntry adds an event without a node to the event history.
func (e *Election) eventEntry(event string, epoch int64, reason string) []redisconn.Command {
	return []redisconn.Command{redisconn.Cmd("XADD", e.keys.Events(), "MAXLEN", "~", 1000, "*", "event", event, "node_id", "",
		"epoch", epoch, "reason", reason)}
}

// wakeUp publishes a hint to all nodes of the election.
func (e *Election) wakeUp(hint string) redisconn.Command {
	return redisconn.Cmd("PUBLISH", e.keys.Wake(), hint)
}
