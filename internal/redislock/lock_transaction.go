package redislock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"baton/internal/elector"
	"baton/internal/redisconn"
	"baton/internal/redislock/script"

	"github.com/gomodule/redigo/redis"
)

// transaction runs a script in this process, for a server that forbids scripts: it WATCHes and
// reads the keys of the script, runs it here, and makes its writes by MULTI/EXEC, which does
// nothing if one of the keys has changed meanwhile. So the rules are written once.
//
// A script must not read its own writes, nor use the reply of a write. Commands by redis.pcall
// are sent after the transaction, because a refusal would undo it.
type transaction struct {
	run  script.Compiled
	keys int
}

// conflicts is how often a transaction is tried that others keep interrupting.
const conflicts = 5

var errConflict = fmt.Errorf("%w: other nodes keep changing the election's keys", elector.ErrRefused)

// DoContext runs the script as redis.Script does. The first key is the lock.
func (t transaction) DoContext(ctx context.Context, conn redis.Conn, keysAndArgs ...any) (any, error) {
	texts := make([]string, len(keysAndArgs))
	for i, v := range keysAndArgs {
		texts[i] = fmt.Sprint(v)
	}
	for range conflicts {
		s, err := readAll(ctx, conn, texts[:t.keys])
		if err != nil {
			return nil, err
		}
		reply, err := t.run(texts[:t.keys], texts[t.keys:], s.call)
		if err != nil {
			_, unwatch := redis.DoContext(conn, ctx, "UNWATCH")
			return nil, errors.Join(err, unwatch)
		}
		done, err := exec(ctx, conn, s.writes)
		if err != nil {
			return nil, err
		}
		if done {
			return reply, attempt(ctx, conn, s.attempts)
		}
	}
	return nil, errConflict
}

// state has the values of an election's keys at one moment, and the writes of a script that
// read them.
type state struct {
	replies          map[string]any               // by the command
	hashes           map[string]map[string]string // by the key
	writes, attempts []redisconn.Command
}

// readAll WATCHes and reads the keys of a script. It does not WATCH the control hash, because
// every standby keeps writing to it: an order that arrives meanwhile counts as given a moment later.
func readAll(ctx context.Context, conn redis.Conn, keys []string) (*state, error) {
	k := script.KeysOf(keys[0])
	commands := []redisconn.Command{
		redisconn.Cmd("WATCH", k.Lock()), redisconn.Cmd("WATCH", k.Term()), redisconn.Cmd("WATCH", k.Quarantine()),
		redisconn.Cmd("GET", k.Lock()), redisconn.Cmd("PTTL", k.Lock()), redisconn.Cmd("PTTL", k.Quarantine()),
		redisconn.Cmd("HGETALL", k.Term()), redisconn.Cmd("HGETALL", k.Control()),
	}
	commands = slices.DeleteFunc(commands, func(c redisconn.Command) bool { return !slices.Contains(keys, c.Args[0].(string)) })
	commands = append(commands, redisconn.Cmd("TIME"), redisconn.Cmd("INFO", "server"), redisconn.Cmd("INFO", "replication"))
	if err := redisconn.SendAll(conn, commands...); err != nil {
		return nil, err
	}
	replies, err := redisconn.ReceiveAll(ctx, conn)
	if err != nil {
		return nil, err
	}
	s := &state{replies: map[string]any{}, hashes: map[string]map[string]string{}}
	for i, c := range commands {
		refusal, refused := replies[i].(redis.Error)
		switch {
		case refused && c.Name != "INFO": // which a server may hide
			return nil, refusal
		case c.Name == "HGETALL":
			if s.hashes[fmt.Sprint(c.Args[0])], err = redis.StringMap(replies[i], nil); err != nil {
				return nil, err
			}
		}
		s.replies[line(c)] = replies[i]
	}
	return s, nil
}

// line is a command as a key.
func line(c redisconn.Command) string {
	return strings.TrimSpace(c.Name + " " + fmt.Sprintln(c.Args...))
}

// call answers a command of the script from the values that were read, and collects its writes.
func (s *state) call(protected bool, name string, args ...string) (any, error) {
	c := redisconn.Command{Name: name, Args: anys(args)}
	if reply, known := s.replies[line(c)]; known {
		return reply, nil
	}
	switch name {
	case "HGET", "HMGET":
		hash, known := s.hashes[args[0]]
		if !known {
			break
		}
		fields := make([]any, 0, len(args)-1)
		for _, field := range args[1:] {
			if value, there := hash[field]; there {
				fields = append(fields, value)
			} else {
				fields = append(fields, nil)
			}
		}
		if name == "HGET" {
			return fields[0], nil
		}
		return fields, nil
	case "PERSIST": // makes room in a full memory, but not for a transaction
		return nil, nil
	case "SET", "DEL", "HSET", "HSETNX", "HDEL", "PEXPIRE", "XADD", "PUBLISH":
		if protected {
			s.attempts = append(s.attempts, c)
		} else {
			s.writes = append(s.writes, c)
		}
		return nil, nil
	}
	return nil, fmt.Errorf("%s was not read beforehand", line(c))
}

func anys(texts []string) []any {
	all := make([]any, len(texts))
	for i, text := range texts {
		all[i] = text
	}
	return all
}

// exec makes the writes in one transaction. It reports false if a WATCHed key has changed.
// Without writes it only ends the WATCH.
func exec(ctx context.Context, conn redis.Conn, writes []redisconn.Command) (bool, error) {
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
		// A lease that expires after the WATCH counts as no change, so EXEC succeeds.
		if extended, ok := r.(int64); ok && extended == 0 && writes[i].Name == "PEXPIRE" {
			return false, nil
		}
	}
	return true, err
}

// attempt sends commands that a user may be forbidden (history, wake-ups): refusals are
// ignored. Its error is that of the connection.
func attempt(ctx context.Context, conn redis.Conn, commands []redisconn.Command) error {
	if len(commands) == 0 {
		return nil
	}
	if err := redisconn.SendAll(conn, commands...); err != nil {
		return err
	}
	_, err := redisconn.ReceiveAll(ctx, conn)
	return err
}
