package redisstore

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"baton/internal/elector"

	"github.com/gomodule/redigo/redis"
)

// decision is the answer to an acquire, and what is written to make it true. The
// courtesies are not part of the truth.
type decision struct {
	verdict
	writes, courtesies []command
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
	last, counts := epochOf(s.term["epoch"])
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
		return answer("held", s.term["node_id"], p.bounded(k.lock(), s.left, s.leaseMS, &d), last, number(s.term["ttl_ms"]))
	case s.holder != "" && !foreign && counts:
		d.writes = append(d.writes, command{"PEXPIRE", []any{k.lock(), p.ttlMS}})
		d.courtesies = append(d.courtesies, p.present("leading", s.now))
		d.verdict = verdict{word: "won", epoch: last}
		return d, nil
	}
	floor := max(c.Floor, number(s.term["floor"]))
	if _, err := s.above(floor, 0); err != nil {
		return decision{}, err
	}
	if s.holder == "" {
		word, why, ms := p.notYet(s, c, p.quarantine(&s, c, m, &d), &d)
		if word != "" {
			return answer(word, why, ms, last, 0)
		}
	}
	return p.win(s, c.Owner, floor, d)
}

// quarantine returns how long no new owner may win, in ms, and begins it if need be.
func (p transactional) quarantine(s *sight, c elector.Candidate, m memory, d *decision) int64 {
	k := p.keys
	vanished := m.early == "lease" && s.holder == "" && s.term["owner"] != "" && s.term["ended"] != "1"
	if vanished {
		d.writes = append(d.writes, command{"HDEL", []any{k.term(), "run_id"}})
		s.hasTerm = false
	}
	run, quarantined := s.term["quarantine_run"]
	_, led := s.term["epoch"]
	known := led || quarantined || s.term["proof"] != "" || c.Floor > 0
	if s.confirmed() || !known {
		return 0
	}
	if c.Floor > number(s.term["floor"]) && c.Floor < countable-1 {
		d.writes = append(d.writes, command{"HSET", []any{k.term(), "floor", c.Floor}})
	}
	if quarantined && (run == s.runID || run == "" || s.runID == "") {
		left := p.bounded(k.quarantine(), s.quarantine, s.leaseMS, d)
		if left > 0 || !vanished && m.early != "quarantine" {
			return max(left, 0)
		}
	}
	d.writes = append(d.writes, command{"HDEL", []any{k.term(), "run_id"}},
		command{"HSET", []any{k.term(), "quarantine_run", s.runID, "ttl_ms", s.leaseMS}}, command{"SET", []any{k.quarantine(), s.runID, "PX", s.leaseMS}})
	d.courtesies = append(d.courtesies, p.event("quarantined", s.epoch(),
		fmt.Sprintf("redis has restarted, failed over or lost its data; a former leader may trust its lease for %d ms", s.leaseMS))...)
	return s.leaseMS
}

// bounded returns what is left of a key, in ms, and makes it a lease at most.
func (p transactional) bounded(key string, left, leaseMS int64, d *decision) int64 {
	if left != noExpiry && left <= leaseMS {
		return left
	}
	d.writes = append(d.writes, command{"PEXPIRE", []any{key, leaseMS}})
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
		other, found := strings.CutPrefix(name, p.keys.priority(""))
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
		d.writes = append(d.writes, command{"HSET", []any{p.keys.control(), "deferred_until", until}})
	}
	if until <= s.now {
		return "", "", 0
	}
	return "wait", fmt.Sprintf("left to %s, which has priority %d", first, highest), until - s.now
}

// win writes the term and, last, the lock.
func (p transactional) win(s sight, owner string, floor int64, d decision) (decision, error) {
	k := p.keys
	var now int64
	if !s.confirmed() {
		now = s.now
	}
	epoch, err := s.above(floor, now)
	if err != nil {
		return d, err
	}
	d.verdict = verdict{word: "won", epoch: epoch}
	d.writes = append(d.writes,
		command{"HSET", []any{k.term(), "epoch", epoch, "owner", owner, "node_id", p.nodeID, "since", s.now, "ttl_ms", p.ttlMS, "run_id", s.runID, "ended", "0"}},
		command{"HDEL", []any{k.term(), "quarantine_run", "proof", "floor"}},
		command{"HDEL", []any{k.control(), "reserved_for", "reserved_until", "deferred_until", "stepdown_owner", "stepdown_to", "stepdown_reason"}},
		command{"SET", []any{k.lock(), owner, "PX", p.ttlMS}})
	if s.term["owner"] != "" && s.term["ended"] != "1" {
		d.courtesies = append(d.courtesies, command{"XADD", []any{k.events(), "MAXLEN", "~", 1000, "*",
			"event", "expired", "node_id", s.term["node_id"], "epoch", s.epoch(), "reason", "its lease ran out"}})
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

// above is the next epoch after the stored one, above a floor and a time. It is
// refused where the script's numbers would end.
func (s sight) above(floor, now int64) (int64, error) {
	stored, written := s.term["epoch"]
	last, ok := epochOf(stored)
	epoch := max(last, floor, now) + 1
	if written && !ok || epoch <= 0 || epoch >= countable {
		return 0, redis.Error(fmt.Sprintf("EPOCH %.30q, or the floor %d, cannot be counted on from", stored, floor))
	}
	return epoch, nil
}

var runIDLine = regexp.MustCompile(`run_id:(\w+)`)

func runID(info string) string {
	if m := runIDLine.FindStringSubmatch(info); m != nil {
		return m[1]
	}
	return ""
}
