package redislock

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"baton/internal/elector"
	"baton/internal/redisconn"

	"github.com/gomodule/redigo/redis"
)

// decision is the answer to an acquire, and what is written to make it true. The
// courtesies are not part of the truth.
type decision struct {
	verdict
	writes, courtesies []redisconn.Command
}

// deferFor is how long a node lets one of a higher priority go first, in ms, and
// seenFor how long that one counts as alive.
const (
	deferFor = 500
	seenFor  = 60_000
)

// decide is lock_acquire.lua in Go; the reasons stand there.
func (p transactional) decide(s sight, c elector.Candidate, m memory) (decision, error) {
	k := p.keys
	var d decision
	if p.priority > 0 && !c.Observer {
		d.courtesies = append(d.courtesies, p.preference(s.now))
	}
	if s.term["forgot"] != "" && !Plausible(c.Floor, 0, s.now) {
		c.Floor = 1
	}
	last, counts := epochOf(s.term["epoch"])
	floor := max(c.Floor, number(s.term["floor"]))
	_, refused := s.above(floor, c.Floor, 0)
	foreign := s.holder != s.term["owner"]
	s.leaseMS = max(p.ttlMS, number(s.term["ttl_ms"]), m.leaseMS)
	answer := func(word, detail string, left, epoch, leaseMS int64) (decision, error) {
		d.verdict = verdict{word: word, detail: detail, left: left, epoch: epoch, leaseMS: leaseMS}
		d.courtesies = append(d.courtesies, p.present("standby", s.now))
		return d, nil
	}
	switch {
	case s.holder != "" && s.holder != c.Owner:
		p.quarantine(&s, c, m, &d)
		if foreign {
			return answer("held", "", s.left, 0, 0)
		}
		if refused != nil {
			last = 0
		}
		return answer("held", s.term["node_id"], p.bounded(k.Lock(), s.left, s.leaseMS, &d), last, number(s.term["ttl_ms"]))
	case s.holder != "" && !foreign && counts && refused == nil:
		d.writes = append(d.writes, redisconn.Cmd("PEXPIRE", k.Lock(), p.ttlMS))
		d.courtesies = append(d.courtesies, p.present("leading", s.now))
		d.verdict = verdict{word: "won", epoch: last}
		return d, nil
	}
	if refused != nil {
		return decision{}, refused
	}
	if s.holder == "" {
		word, why, ms := p.notYet(s, c, p.quarantine(&s, c, m, &d), &d)
		if word != "" {
			return answer(word, why, ms, last, 0)
		}
	}
	return p.win(s, c, floor, d)
}

// quarantine returns how long no new owner may win, in ms, and begins it if need be.
func (p transactional) quarantine(s *sight, c elector.Candidate, m memory, d *decision) int64 {
	k := p.keys
	vanished := m.early == "lease" && s.holder == "" && s.term["owner"] != "" && s.term["ended"] != "1"
	if vanished {
		d.writes = append(d.writes, redisconn.Cmd("HDEL", k.Term(), "run_id"))
		s.hasTerm = false
	}
	run, quarantined := s.term["quarantine_run"]
	_, led := s.term["epoch"]
	known := led || quarantined || s.term["proof"] != "" || c.Floor > 0
	if s.confirmed() || !known {
		return 0
	}
	if c.Floor > number(s.term["floor"]) && c.Floor < countable-1 {
		d.writes = append(d.writes, redisconn.Cmd("HSET", k.Term(), "floor", c.Floor))
	}
	if here := s.incarnation(); quarantined && (run == here || run == s.runID || run == "" || here == "") {
		left := p.bounded(k.Quarantine(), s.quarantine, s.leaseMS, d)
		if left > 0 || !vanished && m.early != "quarantine" {
			return max(left, 0)
		}
	}
	d.writes = append(d.writes, redisconn.Cmd("HDEL", k.Term(), "run_id"),
		redisconn.Cmd("HSET", k.Term(), "quarantine_run", s.incarnation(), "ttl_ms", s.leaseMS),
		redisconn.Cmd("SET", k.Quarantine(), s.incarnation(), "PX", s.leaseMS))
	d.courtesies = append(d.courtesies, p.event("quarantined", s.epoch(),
		fmt.Sprintf("redis has restarted, failed over or lost its data; a former leader may trust its lease for %d ms", s.leaseMS))...)
	return s.leaseMS
}

// bounded returns what is left of a key, in ms, and makes it a lease at most.
func (p transactional) bounded(key string, left, leaseMS int64, d *decision) int64 {
	if left != noExpiry && left <= leaseMS {
		return left
	}
	d.writes = append(d.writes, redisconn.Cmd("PEXPIRE", key, leaseMS))
	return leaseMS
}

// notYet tells why the free lock may not be taken, and how long; "" if it may.
func (p transactional) notYet(s sight, c elector.Candidate, quarantine int64, d *decision) (word, why string, ms int64) {
	reserved, reservedFor := number(s.control["reserved_until"])-s.now, s.control["reserved_for"]
	kept := reservedFor != "" && reserved > 0 && reserved <= elector.ReserveFor.Milliseconds()
	_, paused := s.control["paused_at"]
	switch {
	case paused:
		return "wait", "paused " + s.control["paused_reason"], noExpiry
	case quarantine > 0:
		return "quarantine", "in quarantine, since redis has restarted, failed over or lost its data", quarantine
	case c.Observer:
		return "wait", elector.LeftToOthers, noExpiry
	case kept && reservedFor != p.nodeID:
		return "wait", "reserved for " + reservedFor, reserved
	case kept:
		return "", "", 0
	}
	if word, why, ms = p.preferred(s, d); word == "" && c.Courteous {
		return "wait", elector.LeftToOthers, noExpiry
	}
	return word, why, ms
}

// preferred tells which live node of a higher priority goes first, and how long; "" if
// none does.
func (p transactional) preferred(s sight, d *decision) (word, why string, ms int64) {
	first, highest := "", int64(p.priority)
	for name, value := range s.control {
		other, found := strings.CutPrefix(name, p.keys.Priority(""))
		rank, seen, ok := strings.Cut(value, " ")
		age := s.now - number(seen)
		if found && ok && number(rank) > highest && other != p.nodeID && other != s.term["node_id"] && max(age, -age) < seenFor {
			first, highest = other, number(rank)
		}
	}
	if highest == int64(p.priority) {
		return "", "", 0
	}
	until := number(s.control["deferred_until"])
	if until == 0 || until > s.now+deferFor {
		until = s.now + deferFor
		d.writes = append(d.writes, redisconn.Cmd("HSET", p.keys.Control(), "deferred_until", until))
	}
	if until <= s.now {
		return "", "", 0
	}
	return "wait", fmt.Sprintf("left to %s, which has priority %d", first, highest), until - s.now
}

// win writes the term and, last, the lock.
func (p transactional) win(s sight, c elector.Candidate, floor int64, d decision) (decision, error) {
	k := p.keys
	var now int64
	if !s.confirmed() {
		now = s.now
	}
	epoch, err := s.above(floor, c.Floor, now)
	if err != nil {
		return d, err
	}
	d.verdict = verdict{word: "won", epoch: epoch}
	if until := number(s.term["held_until"]); s.confirmed() && until > 0 {
		d.freeMS = max(s.now-until, 0)
	}
	d.writes = append(d.writes,
		redisconn.Cmd("HSET", k.Term(), "epoch", epoch, "owner", c.Owner, "node_id", p.nodeID, "since", s.now, "ttl_ms", p.ttlMS,
			"run_id", s.runID, "replid", s.replID, "ended", "0",
			"held_until", s.now+p.ttlMS),
		redisconn.Cmd("HDEL", k.Term(), "quarantine_run", "proof", "floor"),
		redisconn.Cmd("HDEL", k.Control(), "reserved_for", "reserved_until", "deferred_until", "stepdown_owner", "stepdown_to",
			"stepdown_reason"),
		redisconn.Cmd("SET", k.Lock(), c.Owner, "PX", p.ttlMS))
	if s.term["owner"] != "" && s.term["ended"] != "1" {
		d.courtesies = append(d.courtesies, redisconn.Cmd("XADD", k.Events(), "MAXLEN", "~", 1000, "*",
			"event", "expired", "node_id", s.term["node_id"], "epoch", s.epoch(), "reason", "its lease ran out"))
	}
	d.courtesies = append(append(d.courtesies, p.event("won", epoch, "")...), p.present("leading", s.now))
	return d, nil
}

// countable is where Lua's numbers, by which the scripts count, end.
const countable = 1 << 53

// epochOf reads an epoch; false if it is none.
func epochOf(text string) (int64, bool) {
	n, err := strconv.ParseUint(text, 10, 53)
	if err != nil {
		return 0, false
	}
	return int64(n), true
}

func (s sight) epoch() int64 {
	n, _ := epochOf(s.term["epoch"])
	return n
}

// farAhead is 30 days in ms: see lock_lib.lua.
const farAhead = 30 * 24 * 60 * 60 * 1000

// Plausible reports whether an epoch may follow from what is known and from Redis' clock,
// in ms. One that is 30 days above both is a forgery or a fault.
func Plausible(epoch, known, now int64) bool { return epoch <= max(known, now)+farAhead }

// above is the next epoch after the stored one, above a floor and a time. It is
// refused where the script's numbers would end, and where what is stored in Redis
// does not follow from its clock, or from what the candidate knows.
func (s sight) above(floor, known, now int64) (int64, error) {
	stored, written := s.term["epoch"]
	last, ok := epochOf(stored)
	epoch := max(last, floor, now) + 1
	if written && !ok || epoch <= 0 || epoch >= countable || !Plausible(max(last, number(s.term["floor"])), known, s.now) {
		return 0, redis.Error(fmt.Sprintf("EPOCH %.30s in redis (floor %d) cannot be counted on from", stored, floor))
	}
	return epoch, nil
}

var (
	runIDLine  = regexp.MustCompile(`run_id:(\w+)`)
	replIDLine = regexp.MustCompile(`master_replid:(\w+)`)
)

// told is what a line of INFO says; "" if there is none.
func told(line *regexp.Regexp, info string) string {
	if m := line.FindStringSubmatch(info); m != nil {
		return m[1]
	}
	return ""
}
