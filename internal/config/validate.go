package config

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Checks contains checks of other packages. A nil check is skipped.
type Checks struct {
	// Schedule checks a schedule in a time zone.
	Schedule func(spec, timeZone string) error
	// Interval returns the shortest time between two slots of a schedule. It returns 0 if the schedule has no interval.
	Interval func(spec, timeZone string) time.Duration
	// Key checks one key in Redis.
	Key func(key string) error
	// Flush checks a whole flush, after the checks of this package.
	Flush func(Redis, Flush) error
}

// validator collects the problems of a configuration.
type validator struct {
	Config
	problems Problems
}

// Validate returns everything that is wrong with c as Problems, sorted by line. c must have been completed by WithDefaults. Validate reads
// no file and makes no connection.
func (c Config) Validate(checks Checks) error {
	v := &validator{Config: c}
	v.node()
	v.redis(c.Redis)
	v.quorum()
	v.stores()
	v.election()
	v.choice("log.level", c.Log.Level, "debug", "info", "warn", "error")
	v.choice("log.format", c.Log.Format, "text", "json")
	v.http()
	v.databases()
	v.bounds()
	v.policy("defaults", c.Defaults)
	v.jobs(checks)
	v.locks()
	v.notify()
	return v.problems.err()
}

func (v *validator) fail(path, format string, args ...any) {
	v.problems = append(v.problems, v.Problem(path, fmt.Sprintf(format, args...)))
}

func (v *validator) required(path, value, example string) bool {
	if value == "" {
		v.fail(path, "required; for example %s", example)
	}
	return value != ""
}

// choice checks that a value is one of a few words. It also accepts an empty value.
func (v *validator) choice(path, value string, words ...string) {
	if value == "" || slices.Contains(words, value) {
		return
	}
	if s := suggest(value, words); strings.HasPrefix(s, "did") {
		v.fail(path, "%q is not known here; %s", value, s)
		return
	}
	v.fail(path, "%q is not known here; write %s", value, orList(words))
}

// orList returns a text such as "a, b or c".
func orList(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// nodeID matches a node id, which needs no quotes in a key, a log field or a shell argument.
var nodeID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`)

// MaxPriority is the highest priority of a node.
const MaxPriority = 1000

func (v *validator) node() {
	if v.Node.ID == "" {
		v.fail("node.id", "this host has no name; set node.id or --node-id")
	} else if !nodeID.MatchString(v.Node.ID) {
		v.fail("node.id", "%q: use letters, digits, dots, dashes and underscores, at most 128 characters", v.Node.ID)
	}
	if p := v.Node.Priority; p < 0 || p > MaxPriority {
		v.fail("node.priority", "%d: must be from 0 to %d; of two nodes, the one with the higher priority leads", p, MaxPriority)
	}
}

// longestInterval is the maximum interval between polls. With a longer interval a live node would count as gone, because a node registers
// at its polls.
const longestInterval = 30 * time.Second

// noLockKey is the message if the lock key is empty, as it is in the configuration that baton's packages install.
const noLockKey = "is empty: write a name for this installation, the same on all its hosts; " +
	"hosts with the same key in the same Redis are one election"

// AwaitsLockKey reports whether the only problem of a configuration is the missing name of its lock. The packages install such a
// configuration, so that two installations do not share a lock by accident.
func AwaitsLockKey(err error) bool {
	problems, ok := errors.AsType[Problems](err)
	return ok && len(problems) == 1 && problems[0].Path == "election.lock_key" && problems[0].Message == noLockKey
}

func (v *validator) election() {
	e := v.Election
	if e.LockKey == "" {
		v.fail("election.lock_key", noLockKey)
	}
	v.lockKey("election.lock_key", e.LockKey)
	v.lockDesign()
	if e.TTL < time.Second {
		v.fail("election.ttl", "%v is too short; a lease needs at least 1s", e.TTL)
		return
	}
	if e.AbdicateAfter < e.TTL {
		v.fail("election.abdicate_after", "%v is shorter than the ttl, %v; raise it, or leave it out", e.AbdicateAfter, e.TTL)
	}
	for key, every := range map[string]time.Duration{"heartbeat_interval": e.HeartbeatInterval, "poll_interval": e.PollInterval} {
		if every > longestInterval {
			v.fail("election."+key, "%v: must be at most %v, because a node that has not registered for a minute counts as gone",
				every, longestInterval)
		}
	}
	need := 2*e.HeartbeatInterval + e.AttemptTimeout + e.Drain + e.Margin()
	if need < e.TTL {
		return
	}
	// The sum consists of four values, and the problem is reported at the value that the operator has set.
	p := v.Problem("election", fmt.Sprintf(
		"2·heartbeat_interval + attempt_timeout + drain + margin must be less than ttl, but 2·%v + %v + %v + %v = %v and ttl is %v; "+
			"raise ttl, or leave the other settings out, because their defaults fit the ttl",
		e.HeartbeatInterval, e.AttemptTimeout, e.Drain, e.Margin(), need, e.TTL))
	for _, key := range []string{"ttl", "heartbeat_interval", "drain", "attempt_timeout"} {
		if pl, ok := v.places["election."+key]; ok {
			p.Source, p.Line, p.Column = pl.source, pl.line, pl.column
			break
		}
	}
	v.problems = append(v.problems, p)
}

// lockDesign checks the settings acquire, lock_format and wait_replicas.
func (v *validator) lockDesign() {
	e := v.Election
	v.choice("election.acquire", e.Acquire, AcquireLua, AcquireSetNX)
	v.choice("election.lock_format", e.LockFormat, FormatString, FormatRedisson)
	if e.Acquire == AcquireSetNX && e.LockFormat == FormatRedisson {
		v.fail("election.lock_format", "redisson needs scripts, and acquire: setnx is for servers that forbid them; remove one of the two")
	}
	if e.WaitReplicas < 0 {
		v.fail("election.wait_replicas", "%d: must be 0 or more", e.WaitReplicas)
	}
}

// CheckLockKey checks a lock key.
func CheckLockKey(key string) error {
	var v validator
	if v.lockKey("election.lock_key", key); key == "" {
		v.fail("election.lock_key", noLockKey)
	}
	return v.problems.err()
}

// lockKey rejects keys with braces that do not form a hash tag such as {tag}, because such keys would put one election into different slots
// of a cluster.
func (v *validator) lockKey(path, key string) {
	for _, r := range key {
		if r <= ' ' || r == 0x7f {
			v.fail(path, "%q has a space or a control character in it", key)
			return
		}
	}
	if strings.ContainsAny(key, "{}") && !tagged.MatchString(key) {
		v.fail(path, "%q: braces must be one {tag}, for example {shop}:leader", key)
	}
}

var tagged = regexp.MustCompile(`^[^{}]*\{[^{}]+\}[^{}]*$`)

func (v *validator) databases() {
	for _, name := range slices.Sorted(maps.Keys(v.Databases)) {
		at, db := "databases."+name, v.Databases[name]
		if !databaseName.MatchString(name) {
			v.fail(at, "use lower-case letters, digits, dashes and underscores, at most 63 characters")
		}
		if v.required(at+".driver", db.Driver, "postgres") {
			v.driver(at+".driver", db.Driver)
		}
		switch {
		case db.DSNFile == "" && db.DSNInline == "":
			v.fail(at, "needs dsn_file (or dsn); for example dsn_file: /etc/baton/%s.dsn", name)
		case db.DSNFile != "" && db.DSNInline != "":
			v.fail(at+".dsn", "dsn_file is set too; keep one of them")
		}
		v.pooler(at+".pooler", db)
	}
}

func (v *validator) pooler(path string, db Database) {
	switch {
	case db.Pooler == "":
	case db.Driver != "postgres":
		v.fail(path, "only for driver: postgres; remove it")
	case db.Pooler == "statement":
		v.fail(path, "a pooler in statement mode has no transactions, and baton needs them; set its pool_mode = transaction")
	default:
		v.choice(path, db.Pooler, PoolerTransaction)
	}
}

func (v *validator) driver(path, driver string) {
	alias := map[string]string{
		"mariadb": "mysql", "postgresql": "postgres", "pgx": "postgres", "pg": "postgres", "sqlite3": "sqlite",
	}
	if to, ok := alias[strings.ToLower(driver)]; ok {
		v.fail(path, "%q is not known here; write %s", driver, to)
		return
	}
	v.choice(path, driver, "postgres", "mysql", "sqlite")
}

var databaseName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

func (v *validator) zone(path, name string) {
	if name == "Local" {
		v.fail(path, "Local differs from host to host; write a name such as Europe/Berlin")
	} else if _, err := time.LoadLocation(name); err != nil {
		v.fail(path, "%q is not a time zone; write a name such as UTC or Europe/Berlin", name)
	}
}
