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
	seenFor  = 45_000
)

// decide is lock_acquire.lua in Go; the reasons stand there.
func (p transactional) decide(s sight, c elector.Candidate) (decision, error) {
	k := p.keys
	if s.holder == "" || s.holder == c.Owner {
		if _, err := above(s.term["epoch"], c.Floor, 0); err != nil {
			return decision{}, err
		}
	}
	last := number(s.term["epoch"])
	_, quarantined := s.term["quarantine_run"]
	unconfirmed := (!s.hasTerm || s.term["run_id"] != s.runID) && (s.term["epoch"] != "" || quarantined || c.Floor > 0)

	var d decision
	if p.priority > 0 && !c.Observer {
		d.courtesies = append(d.courtesies, command{"HSET", []any{k.control(), k.priority(p.nodeID), fmt.Sprintf("%d %d", p.priority, s.now)}})
	}
	var left int64
	switch {
	case !unconfirmed || s.holder == c.Owner:
	case quarantined && s.term["quarantine_run"] == s.runID:
		left = max(s.quarantine, 0)
	default:
		left = max(p.ttlMS, number(s.term["ttl_ms"]))
		d.writes = append(d.writes, command{"HSET", []any{k.term(), "quarantine_run", s.runID}}, command{"SET", []any{k.quarantine(), s.runID, "PX", left}})
		d.courtesies = append(d.courtesies, p.event("quarantined", last,
			fmt.Sprintf("redis has restarted, failed over or lost its data; a former leader may trust its lease for %d ms", left))...)
	}
	answer := func(word, detail string, left, epoch int64) (decision, error) {
		d.verdict = verdict{word: word, detail: detail, left: left, epoch: epoch}
		d.courtesies = append(d.courtesies, p.present("standby", s.now))
		return d, nil
	}
	switch {
	case s.holder != "" && s.holder != c.Owner && s.holder == s.term["owner"]:
		return answer("held", s.term["node_id"], s.left, last)
	case s.holder != "" && s.holder != c.Owner:
		return answer("held", "", s.left, 0)
	case s.holder != "" && s.holder == s.term["owner"]:
		d.writes = append(d.writes, command{"PEXPIRE", []any{k.lock(), p.ttlMS}})
		d.courtesies = append(d.courtesies, p.present("leading", s.now))
		d.verdict = verdict{word: "won", epoch: last}
		return d, nil
	}
	if s.holder == "" {
		if why, ms := p.notYet(s, c, left, &d); why != "" {
			return answer("wait", why, ms, last)
		}
	}
	return p.win(s, c, d)
}

// notYet tells why the free lock may not be taken, and how long.
func (p transactional) notYet(s sight, c elector.Candidate, quarantine int64, d *decision) (string, int64) {
	reserved := number(s.control["reserved_until"]) - s.now
	reservedFor := s.control["reserved_for"]
	switch {
	case s.control["paused_at"] != "":
		return "paused " + s.control["paused_reason"], noExpiry
	case quarantine > 0:
		return "in quarantine, since redis has restarted, failed over or lost its data", quarantine
	case c.Observer:
		return "left to others: this node is no candidate", noExpiry
	case reservedFor != "" && reservedFor != p.nodeID && reserved > 0:
		return "reserved for " + reservedFor, reserved
	case reservedFor == p.nodeID && reserved > 0:
		return "", 0
	}
	firstNode, highest := "", int64(p.priority)
	for name, value := range s.control {
		other, found := strings.CutPrefix(name, p.keys.priority(""))
		rank, seen, ok := strings.Cut(value, " ")
		if found && ok && number(rank) > highest && other != p.nodeID && other != s.term["node_id"] && s.now-number(seen) < seenFor {
			firstNode, highest = other, number(rank)
		}
	}
	if firstNode == "" {
		return "", 0
	}
	until := number(s.control["deferred_until"])
	if until == 0 {
		until = s.now + deferFor
		d.writes = append(d.writes, command{"HSET", []any{p.keys.control(), "deferred_until", until}})
	}
	if until <= s.now {
		return "", 0
	}
	return fmt.Sprintf("left to %s, which has priority %d", firstNode, highest), until - s.now
}

// win writes the term and, last, the lock.
func (p transactional) win(s sight, c elector.Candidate, d decision) (decision, error) {
	k := p.keys
	var now int64
	if !s.hasTerm || s.term["run_id"] != s.runID {
		now = s.now
	}
	epoch, err := above(s.term["epoch"], c.Floor, now)
	if err != nil {
		return d, err
	}
	d.verdict = verdict{word: "won", epoch: epoch}
	d.writes = append(d.writes,
		command{"HSET", []any{k.term(), "epoch", epoch, "owner", c.Owner, "node_id", p.nodeID, "since", s.now, "ttl_ms", p.ttlMS, "run_id", s.runID, "ended", "0"}},
		command{"HDEL", []any{k.term(), "quarantine_run"}},
		command{"HDEL", []any{k.control(), "reserved_for", "reserved_until", "deferred_until", "stepdown_owner", "stepdown_to", "stepdown_reason"}})
	if s.holder == "" {
		d.writes = append(d.writes, command{"SET", []any{k.lock(), c.Owner, "NX", "PX", p.ttlMS}})
	} else {
		d.writes = append(d.writes, command{"PEXPIRE", []any{k.lock(), p.ttlMS}})
	}
	if s.term["owner"] != "" && s.term["ended"] != "1" {
		d.courtesies = append(d.courtesies, command{"XADD", []any{k.events(), "MAXLEN", "~", 1000, "*",
			"event", "expired", "node_id", s.term["node_id"], "epoch", s.term["epoch"], "reason", "its lease ran out"}})
	}
	d.courtesies = append(append(d.courtesies, p.event("won", epoch, "")...), p.present("leading", s.now))
	return d, nil
}

// above is the next epoch after the stored one, above a floor and a time. It is
// refused where the script's numbers would end.
func above(stored string, floor, now int64) (int64, error) {
	last, err := int64(0), error(nil)
	if stored != "" {
		last, err = strconv.ParseInt(stored, 10, 64)
	}
	epoch := max(last, floor, now) + 1
	if err != nil || last < 0 || epoch <= 0 || epoch >= 1<<53 {
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
