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

// Checks are the checks of other packages; a nil one is left out.
type Checks struct {
	// Schedule checks a schedule in a time zone.
	Schedule func(spec, timeZone string) error
	// Interval is the shortest time between two slots of a schedule; 0: it has no interval.
	Interval func(spec, timeZone string) time.Duration
	// Key checks one key in Redis.
	Key func(key string) error
	// Flush checks a flush as a whole, after the checks made here.
	Flush func(Redis, Flush) error
}

// validator collects problems.
type validator struct {
	Config
	problems Problems
}

// Validate reports everything that is wrong with c, which WithDefaults has
// completed, as Problems sorted by line. It reads no file and connects nowhere.
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

// choice checks a value that must be one of a few words; it does not require one.
func (v *validator) choice(path, value string, words ...string) {
	if value == "" || slices.Contains(words, value) {
		return
	}
	if s := suggest(value, words); strings.HasPrefix(s, "did") {
		v.fail(path, "%q is not known here; %s", value, s)
		return
	}
	v.fail(path, "%q is not known here; want %s", value, orList(words))
}

// orList writes a, b or c.
func orList(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// nodeID is a text that fits into a key, a log field and a shell argument without quotes.
var nodeID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`)

// MaxPriority is the highest priority of a node.
const MaxPriority = 1000

func (v *validator) node() {
	if v.Node.ID == "" {
		v.fail("node.id", "this host has no name; set node.id or --node-id")
	} else if !nodeID.MatchString(v.Node.ID) {
		v.fail("node.id", "%q: want letters, digits, dots, dashes and underscores, at most 128", v.Node.ID)
	}
	if p := v.Node.Priority; p < 0 || p > MaxPriority {
		v.fail("node.priority", "%d: want 0 to %d; of two nodes the one with more leads", p, MaxPriority)
	}
}

// longestInterval keeps a live node from counting as gone: it registers when it asks, but not each time.
const longestInterval = 30 * time.Second

// noLockKey is the problem of a configuration as the packages install it.
const noLockKey = "is empty: write a name for this installation, the same on all its hosts; " +
	"hosts with the same key in the same Redis are one election"

// AwaitsLockKey reports whether a configuration lacks only the name of its lock. The packages install such a one, so that two
// installations never share a lock unnoticed.
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
			v.fail("election."+key, "%v: want at most %v; a node that has not registered for a minute counts as gone",
				every, longestInterval)
		}
	}
	need := 2*e.HeartbeatInterval + e.AttemptTimeout + e.Drain + e.Margin()
	if need < e.TTL {
		return
	}
	// The sum has four values; the problem is reported at the one that the operator set.
	p := v.Problem("election", fmt.Sprintf(
		"2·heartbeat_interval + attempt_timeout + drain + margin must be less than ttl, but 2·%v + %v + %v + %v = %v and ttl is %v; "+
			"raise ttl, or leave the others out: their defaults fit it",
		e.HeartbeatInterval, e.AttemptTimeout, e.Drain, e.Margin(), need, e.TTL))
	for _, key := range []string{"ttl", "heartbeat_interval", "drain", "attempt_timeout"} {
		if pl, ok := v.places["election."+key]; ok {
			p.Source, p.Line, p.Column = pl.source, pl.line, pl.column
			break
		}
	}
	v.problems = append(v.problems, p)
}

// lockDesign checks the way of taking the lock, and its format.
func (v *validator) lockDesign() {
	e := v.Election
	v.choice("election.acquire", e.Acquire, AcquireLua, AcquireSetNX)
	v.choice("election.lock_format", e.LockFormat, FormatString, FormatRedisson)
	if e.Acquire == AcquireSetNX && e.LockFormat == FormatRedisson {
		v.fail("election.lock_format", "redisson needs scripts, and acquire: setnx is for servers that forbid them; remove one of the two")
	}
	if e.WaitReplicas < 0 {
		v.fail("election.wait_replicas", "%d: want 0 or more", e.WaitReplicas)
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

// lockKey refuses keys that would put one election into different slots of a cluster: braces that are no {tag}.
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
			v.fail(at, "want a name of lower-case letters, digits, dashes and underscores, at most 63")
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
		v.fail(path, "is for driver: postgres; remove it")
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
