package redisstore

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
)

// PreflightUse is what a job reads.
type PreflightUse struct {
	Job  string
	Type string // counters, hashes, list, stream or scan
	// Watermark: counters that stay where they are.
	Watermark bool
	// Value is what the keys of a scan hold: hash, string, json, set or zset.
	Value string
	// Live are the keys that are staged, or read as they are: one of each shard; for rows
	// and for counters with a key each, the index of what has changed.
	Live []string
	// Key is the pattern of the rows' keys, "user:<id>"; "" if there is none.
	Key string
	// Retain: a stream is trimmed.
	Retain bool
	// Wait: it is waited for work.
	Wait bool
}

// What the sources send, with K for the key, S, M and I for its stage, what is known
// of that, and its staged index, P for the positions in a stream, R for a row. Whatever stands here is asked for when a
// user's permissions are checked, in the order of a flush.
var (
	stagingCommands = []string{"TYPE K", "EXISTS K", "RENAME K S", "TYPE S", "EXISTS S", "PERSIST S", "UNLINK S",
		"HGET M id", "HMGET M id", "HSET M id 1", "UNLINK M", "EVAL s 3 K S M", "EVALSHA s 3 K S M"}
	setCommands  = []string{"SCARD K", "SSCAN S 0", "SREM S m"}
	zsetCommands = []string{"ZCARD K", "ZSCAN S 0", "ZREM S m"}
	hashRow      = []string{"MULTI", "EXISTS R", "HMGET R f", "EXEC", "EVAL s 1 R", "EVALSHA s 1 R"}
)

// commands are those of the use for one live key, whose type is kind.
func (u PreflightUse) commands(kind string) []string {
	var all []string
	index := map[string][]string{"set": setCommands, "zset": zsetCommands}[kind]
	switch u.Type {
	case "counters":
		switch {
		case u.Watermark && u.Key != "":
			return []string{"SCAN 0", "GETRANGE R 0 1"}
		case u.Watermark:
			return []string{"HLEN K", "HSCAN K 0"}
		case u.Key != "":
			all = append(slices.Clone(stagingCommands), "RENAME K I", "MGET R", "DEL R", "HLEN S", "HSCAN S 0", "EVAL s 4 I S M R")
			switch kind {
			case "zset":
				return append(all, "ZCARD K", "ZSCAN I 0", "ZSCORE I m", "ZREM I m")
			case "set":
				return append(all, "SCARD K", "SSCAN I 0", "SISMEMBER I m", "SREM I m")
			}
			return all
		}
		return append(slices.Clone(stagingCommands), "HLEN K", "HLEN S", "HSCAN S 0")
	case "hashes":
		return slices.Concat(stagingCommands, index, hashRow)
	case "list":
		all = append(slices.Clone(stagingCommands), "LLEN K", "LRANGE S 0 0", "LTRIM S 0 0")
	case "stream":
		all = []string{"TYPE K", "XINFO STREAM K", "XRANGE K - +", "XREVRANGE K + -", "HGET P f", "EVAL s 2 K P", "EVALSHA s 2 K P"}
		if u.Retain {
			all = append(all, "TIME", "HGETALL P", "HSET P f v", "XTRIM K MINID 1")
		}
		if u.Wait {
			all = append(all, "XREAD STREAMS K 0")
		}
	case "scan":
		read := map[string][]string{"hash": hashRow, "string": {"GET R"}, "json": {"GET R"}, "set": {"SSCAN R 0", "SISMEMBER R m"}, "zset": {"ZSCAN R 0", "ZSCORE R m"}}
		all = append([]string{"SCAN 0", "TYPE R", "EXISTS R"}, read[u.Value]...)
	}
	return all
}

// lockCommands are those of an election, with L for the lock, W for its channel, and
// T, Q, N, C, E, J, H, O and U for the keys of the election and of its jobs.
var lockCommands = []string{
	"GET L", "SET L v PX 1", "DEL L", "PTTL L", "PEXPIRE L 1", "EXISTS L",
	"HGET T f", "HMGET T f", "HSET T f v", "EXISTS Q", "SET Q v PX 1", "HGETALL N", "HSET N f v", "HDEL N f",
	"HGET C f", "HMGET C f", "HSET C f v", "HDEL C f", "XADD E * f v", "XREVRANGE E + -", "PUBLISH W m", "SUBSCRIBE W", "TIME",
}

var (
	ledgerCommands = []string{"HGET J f", "HMGET J f", "HSET J f v", "HSETNX J f v", "HDEL J f", "HGETALL J", "HINCRBY J f 1", "PERSIST J",
		"XADD H * f v", "XREVRANGE H + -", "XDEL H 1-1", "XTRIM H MINID 0",
		"SET O v", "APPEND O v", "STRLEN O", "GETRANGE O 0 1", "PEXPIRE O 1", "UNLINK O", "ZADD U 0 v", "ZRANGE U 0 1", "ZREMRANGEBYRANK U 0 1"}
	lockScripted = []string{"EVAL s 2 L T", "EVALSHA s 2 L T"}
)

// capture is a name in a pattern of keys.
var capture = regexp.MustCompile(`<[^<>]+>`)

// access asks for every command that will be sent whether this user may. Redis checks
// that before it queues a command of a transaction, and the transaction is discarded:
// nothing is executed. That takes no permission but those of a flush, and works in
// every version, where ACL DRYRUN takes a right that a user like ours has not got.
func (x *examination) access(ctx context.Context, s *Store) {
	subject := x.subject
	defer func() { x.subject = subject }()
	if lock := x.options.LockKey; lock != "" {
		x.lockAccess(ctx, s, newKeys(lock))
	}
	for _, u := range x.options.Uses {
		x.subject = fmt.Sprintf("job %q", u.Job)
		names := u.Live
		row := capture.ReplaceAllString(u.Key, "1")
		if len(names) == 0 {
			names = []string{row}
		}
		lacks := lacking{}
		for _, live := range names {
			kind, err := redis.String(s.run(ctx, live, func(c redis.Conn) (any, error) { return redis.DoContext(c, ctx, "TYPE", live) }))
			if err != nil {
				kind = "" // the refusal is told with the others
			}
			stage := stagedKey{live: live}
			keys := map[string]string{"K": live, "S": stage.stage(), "M": stage.meta(), "I": slotPrefix(live) + ":baton:index",
				"P": slotPrefix(live) + ":baton:positions", "R": row}
			commands := u.commands(kind)
			if x.cluster && u.Type == "scan" {
				commands = append(commands, "CLUSTER NODES") // whether keys are on their way
			}
			if err := lacks.ask(ctx, s, live, keys, commands); err != nil {
				x.add(flush.SeverityInfo, fmt.Sprintf("the permissions of its user could not be checked: %v", err), "what is refused shows at the first flush", "ask again")
				break
			}
		}
		x.lacks(lacks, "every flush fails; nothing is lost, the changes wait")
	}
}

func (x *examination) lockAccess(ctx context.Context, s *Store, k keys) {
	commands := lockCommands
	if !x.options.WithoutScripts {
		commands = slices.Concat(commands, lockScripted)
	}
	if x.options.Format == Redisson {
		commands = append(slices.Clone(commands), "HKEYS L")
	}
	if x.data() {
		commands = slices.Concat(commands, ledgerCommands)
	}
	const anyJob = "x"
	lacks := lacking{}
	if err := lacks.ask(ctx, s, k.lock(), map[string]string{
		"L": k.lock(), "T": k.term(), "Q": k.quarantine(), "N": k.nodes(), "C": k.control(), "E": k.events(), "W": k.wake(),
		"J": k.job(anyJob), "H": k.runs(anyJob), "O": k.output(anyJob, anyJob), "U": k.outputs(anyJob),
	}, commands); err != nil {
		x.add(flush.SeverityInfo, fmt.Sprintf("the permissions of its user could not be checked: %v", err), "what is refused shows when a node wants to lead", "ask again")
		return
	}
	x.lacks(lacks, "nobody leads, or leaders cannot do all that is asked of them")
}

// lacking is what a user may not do: the commands, and the keys and channels, by what
// was tried there.
type lacking struct{ commands, keys map[string]string }

// ask tries the commands where key is. Only what says that a permission lacks counts.
func (l *lacking) ask(ctx context.Context, s *Store, key string, keys map[string]string, commands []string) error {
	c, err := s.Dial(ctx, key)
	if err != nil {
		return err
	}
	defer c.Close() // and whatever may still be queued is gone
	if routed, ok := c.(*routed); ok {
		c = routed.Conn // a row may be on another node: what is asked is only whether we may
	}
	if _, err := redis.DoContext(c, ctx, "MULTI"); err != nil {
		return err
	}
	if l.commands == nil {
		l.commands, l.keys = map[string]string{}, map[string]string{}
	}
	for _, text := range commands {
		words := strings.Fields(text)
		args, touched := make([]any, len(words)-1), []string{}
		for i, word := range words[1:] {
			args[i] = word
			if name, ok := keys[word]; ok {
				args[i], touched = name, append(touched, name)
			}
		}
		if words[0] == "MULTI" || words[0] == "EXEC" {
			continue // it has just been done, or would be
		}
		_, err := redis.DoContext(c, ctx, words[0], args...)
		var refusal redis.Error
		switch {
		case err == nil:
		case !errors.As(err, &refusal):
			return err
		case codeOf(refusal) == "NOPERM":
			l.note(string(refusal), words[0], touched)
		}
	}
	_, err = redis.DoContext(c, ctx, "DISCARD")
	return err
}

// note sorts a refusal by whether the command lacks, or what it was to touch. Of
// several keys those are blamed of which none is known to lack.
func (l *lacking) note(refusal, name string, touched []string) {
	if strings.Contains(refusal, "run the") { // it names the command
		l.commands[strings.ToLower(name)] = ""
		return
	}
	if len(touched) > 1 && slices.ContainsFunc(touched, func(key string) bool { return l.keys[key] != "" }) {
		return
	}
	for _, key := range touched {
		l.keys[key] = name
	}
}

// lacks tells what is not permitted, and how it is granted.
func (x *examination) lacks(l lacking, consequence string) {
	if len(l.commands)+len(l.keys) == 0 {
		return
	}
	var what, grants []string
	for _, name := range sortedNames(l.commands) {
		what = append(what, strings.ToUpper(name))
		grants = append(grants, "+"+name)
	}
	for _, key := range sortedNames(l.keys) {
		what = append(what, key)
		sign := "~"
		if name := l.keys[key]; name == "PUBLISH" || name == "SUBSCRIBE" {
			sign = "&"
		}
		grants = append(grants, sign+key)
	}
	x.add(flush.SeverityError, "the redis user may not use "+strings.Join(short(what), ", "), consequence, "ACL SETUSER … "+strings.Join(short(grants), " ")+" (docs/redis.md has the whole line)")
}

// short keeps a list readable.
func short(names []string) []string {
	const most = 12
	if len(names) > most {
		return append(slices.Clone(names[:most]), fmt.Sprintf("and %d more", len(names)-most))
	}
	return names
}

func sortedNames(set map[string]string) []string {
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
