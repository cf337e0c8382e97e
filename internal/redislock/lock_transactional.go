package redislock

import (
	"context"
	"errors"
	"fmt"

	"baton/internal/elector"
	"baton/internal/redisconn"

	"github.com/gomodule/redigo/redis"
)

// transactional asks without scripts: WATCH what a decision rests on, read it,
// decide here, and write by MULTI/EXEC, which does nothing if any of it has changed
// meanwhile. The decisions are those of the scripts of the same names.
type transactional struct{ participant }

// conflicts is how often a transaction is tried that others keep interrupting.
const conflicts = 5

var errConflict = fmt.Errorf("%w: other nodes keep changing the election's keys", elector.ErrRefused)

func (p transactional) acquire(ctx context.Context, conn redis.Conn, c elector.Candidate, seen func() memory) (verdict, error) {
	for range conflicts {
		s, err := p.look(ctx, conn, true)
		if err != nil {
			return verdict{}, err
		}
		d, err := p.decide(s, c, seen())
		if err != nil {
			return verdict{}, err
		}
		done, err := p.exec(ctx, conn, d.writes)
		if err != nil {
			return verdict{}, err
		}
		if done {
			return d.verdict, p.courtesies(ctx, conn, d.courtesies)
		}
	}
	return verdict{}, errConflict
}

func (p transactional) renew(ctx context.Context, conn redis.Conn, owner string, epoch int64, _, tell bool) (elector.Order, error) {
	k := p.keys
	for range conflicts {
		s, err := p.look(ctx, conn, true)
		if err != nil {
			return elector.Order{}, err
		}
		var writes, courtesies []redisconn.Command
		confirmed := s.confirmed()
		last := s.epoch()
		switch {
		case s.holder == owner && !confirmed:
			// Not PEXPIRE: old servers let a transaction pass whose watched key has run out.
			writes = []redisconn.Command{redisconn.Cmd("SET", k.Lock(), owner, "PX", p.ttlMS)}
		case s.holder == owner:
			writes = []redisconn.Command{redisconn.Cmd("PEXPIRE", k.Lock(), p.ttlMS)}
		case confirmed, s.term["owner"] != "" && last > epoch, s.holder != "" && (s.holder != s.term["owner"] || last >= epoch):
			_, err := redis.DoContext(conn, ctx, "UNWATCH")
			return elector.Order{}, errors.Join(lost(s.holder), err)
		default: // see lock_renew.lua
			writes = []redisconn.Command{redisconn.Cmd("SET", k.Lock(), owner, "PX", p.ttlMS)}
			courtesies = p.event("restored", epoch, "redis had lost the lock; its leader has put it back")
		}
		if !confirmed {
			writes = append(writes,
				redisconn.Cmd("HSET", k.Term(), "epoch", max(last, epoch), "owner", owner, "node_id", p.nodeID, "ttl_ms", p.ttlMS,
					"run_id", s.runID, "ended", "0"),
				redisconn.Cmd("HSETNX", k.Term(), "since", s.now), redisconn.Cmd("HDEL", k.Term(), "quarantine_run", "proof"),
				redisconn.Cmd("DEL", k.Quarantine()))
		}
		if stored, ok := epochOf(s.term["epoch"]); !ok || !Plausible(stored, epoch, s.now) {
			writes = append(writes, redisconn.Cmd("HSET", k.Term(), "epoch", epoch))
		}
		writes = append(writes, redisconn.Cmd("HSET", k.Term(), "held_until", s.now+p.ttlMS))
		if s.replID != "" && s.term["replid"] != s.replID {
			writes = append(writes, redisconn.Cmd("HSET", k.Term(), "replid", s.replID))
		}
		done, err := p.exec(ctx, conn, writes)
		if err != nil {
			return elector.Order{}, err
		}
		if done {
			if tell {
				courtesies = append(courtesies, p.present("leading", s.now))
			}
			return s.order(owner), p.courtesies(ctx, conn, courtesies)
		}
	}
	return elector.Order{}, errConflict
}

// order is what operators ask of the leader.
func (s sight) order(owner string) elector.Order {
	if s.control["paused_at"] != "" {
		return elector.Order{StepDown: true, Reason: "paused " + s.control["paused_reason"]}
	}
	if s.control["stepdown_owner"] != owner {
		return elector.Order{}
	}
	return elector.Order{StepDown: true, To: s.control["stepdown_to"], Reason: s.control["stepdown_reason"]}
}

func (p transactional) release(ctx context.Context, conn redis.Conn, owner string, h elector.Handover) (bool, error) {
	k := p.keys
	for range conflicts {
		s, err := p.look(ctx, conn, false)
		if err != nil {
			return false, err
		}
		if s.holder != owner {
			_, err := redis.DoContext(conn, ctx, "UNWATCH")
			return false, err
		}
		writes := []redisconn.Command{redisconn.Cmd("HDEL", k.Control(), "stepdown_owner", "stepdown_to", "stepdown_reason")}
		if h.To != "" {
			writes = append(writes, redisconn.Cmd("HSET", k.Control(), "reserved_for", h.To, "reserved_until",
				s.now+elector.ReserveFor.Milliseconds()))
		}
		writes = append(writes, redisconn.Cmd("HSET", k.Term(), "ended", "1", "held_until", s.now), redisconn.Cmd("DEL", k.Lock()))
		done, err := p.exec(ctx, conn, writes)
		if err != nil {
			return false, err
		}
		if done {
			told := p.event(h.Event, s.epoch(), h.Reason)
			if h.Event != string(elector.EventWithdrawn) { // as in lock_release.lua
				told = append(told, redisconn.Cmd("PUBLISH", k.Wake(), "released"))
			}
			return true, p.courtesies(ctx, conn, told)
		}
	}
	return false, errConflict
}

func (p transactional) raise(ctx context.Context, conn redis.Conn, owner string, floor int64) (int64, error) {
	for range conflicts {
		s, err := p.look(ctx, conn, false)
		if err != nil {
			return 0, err
		}
		if s.holder != owner {
			_, err := redis.DoContext(conn, ctx, "UNWATCH")
			return 0, errors.Join(elector.ErrLost, err)
		}
		if highest := max(s.epoch(), floor); !Plausible(highest, 0, s.now) {
			_, err := redis.DoContext(conn, ctx, "UNWATCH")
			return 0, errors.Join(redis.Error(fmt.Sprintf("EPOCH %d cannot be counted on from", highest)), err)
		}
		epoch := max(s.epoch(), floor+1)
		done, err := p.exec(ctx, conn, []redisconn.Command{redisconn.Cmd("HSET", p.keys.Term(), "epoch", epoch, "owner", owner)})
		if err != nil || done {
			return epoch, err
		}
	}
	return 0, errConflict
}

// sight is what a decision rests on, at one moment.
type sight struct {
	now        int64 // Redis' clock, in ms
	holder     string
	left       int64 // of the lease, in ms
	term       map[string]string
	hasTerm    bool // it says which incarnation wrote it
	control    map[string]string
	quarantine int64 // in ms; not positive when it is over
	runID      string
	replID     string
	leaseMS    int64 // the longest that is known of
}

// confirmed reports whether somebody has won or renewed in this incarnation.
// A term that older versions have written tells no replid.
func (s sight) confirmed() bool {
	replID := s.term["replid"]
	return s.hasTerm && s.term["run_id"] == s.runID && (replID == "" || s.replID == "" || replID == s.replID)
}

// incarnation names the process and the data in it: see lock_lib.lua.
func (s sight) incarnation() string {
	if s.replID == "" {
		return s.runID
	}
	return s.runID + "/" + s.replID
}

// look reads what a decision rests on, and has Redis watch it: but for the control
// hash, in which every standby writes all the time. What is decided in ignorance of
// an order that is just being given, is as if it had been given a moment later.
func (p transactional) look(ctx context.Context, conn redis.Conn, incarnation bool) (s sight, err error) {
	k := p.keys
	commands := []redisconn.Command{
		redisconn.Cmd("WATCH", k.Lock(), k.Term(), k.Quarantine()), redisconn.Cmd("TIME"), redisconn.Cmd("GET", k.Lock()),
		redisconn.Cmd("PTTL", k.Lock()),
		redisconn.Cmd("HGETALL", k.Term()), redisconn.Cmd("HGETALL", k.Control()), redisconn.Cmd("PTTL", k.Quarantine()),
	}
	if incarnation {
		commands = append(commands, redisconn.Cmd("INFO", "server"), redisconn.Cmd("INFO", "replication"))
	}
	if err := redisconn.SendAll(conn, commands...); err != nil {
		return s, err
	}
	replies, err := redisconn.ReceiveAll(ctx, conn)
	if err != nil {
		return s, err
	}
	for _, r := range replies[:7] {
		if refusal, ok := r.(redis.Error); ok {
			return s, refusal
		}
	}
	now, err := redisconn.Time(replies[1])
	if err != nil {
		return s, err
	}
	s.now = now.UnixMilli()
	if s.holder, err = redis.String(replies[2], nil); err != nil && !errors.Is(err, redis.ErrNil) {
		return s, err
	}
	var errs [4]error
	s.left, errs[0] = redis.Int64(replies[3], nil)
	s.term, errs[1] = redis.StringMap(replies[4], nil)
	s.control, errs[2] = redis.StringMap(replies[5], nil)
	s.quarantine, errs[3] = redis.Int64(replies[6], nil)
	_, s.hasTerm = s.term["run_id"]
	if incarnation {
		// A server that hides INFO is an incarnation without a name.
		server, _ := redis.String(replies[7], nil)
		replication, _ := redis.String(replies[8], nil)
		s.runID, s.replID = told(runIDLine, server), told(replIDLine, replication)
	}
	return s, errors.Join(errs[:]...)
}

// exec writes in one transaction, and reports whether it was done: not, if
// anything that was looked at has changed. Without writes it only stops watching.
func (p transactional) exec(ctx context.Context, conn redis.Conn, writes []redisconn.Command) (bool, error) {
	if len(writes) == 0 {
		_, err := redis.DoContext(conn, ctx, "UNWATCH")
		return true, err
	}
	commands := append(append([]redisconn.Command{redisconn.Cmd("MULTI")}, writes...), redisconn.Cmd("EXEC"))
	if err := redisconn.SendAll(conn, commands...); err != nil {
		return false, err
	}
	replies, err := redisconn.ReceiveAll(ctx, conn)
	if err != nil {
		return false, err
	}
	for _, r := range replies[:len(replies)-1] {
		if refusal, ok := r.(redis.Error); ok {
			return false, refusal
		}
	}
	results, err := redis.Values(replies[len(replies)-1], nil)
	if errors.Is(err, redis.ErrNil) {
		return false, nil
	}
	for i, r := range results {
		if refusal, ok := r.(redis.Error); ok {
			return false, refusal
		}
		// A lease that runs out between the look and the transaction is nobody's
		// change, so that EXEC goes through.
		if extended, ok := r.(int64); ok && extended == 0 && writes[i].Name == "PEXPIRE" {
			return false, nil
		}
	}
	return true, err
}

// courtesies are written for those who look on: a user who may not is served all
// the same. Its error is that of the connection.
func (p transactional) courtesies(ctx context.Context, conn redis.Conn, commands []redisconn.Command) error {
	if len(commands) == 0 {
		return nil
	}
	if err := redisconn.SendAll(conn, commands...); err != nil {
		return err
	}
	_, err := redisconn.ReceiveAll(ctx, conn)
	return err
}

func (p transactional) event(event string, epoch int64, reason string) []redisconn.Command {
	return []redisconn.Command{redisconn.Cmd("XADD", p.keys.Events(), "MAXLEN", "~", 1000, "*", "event", event, "node_id", p.nodeID,
		"epoch", epoch, "reason", reason)}
}
