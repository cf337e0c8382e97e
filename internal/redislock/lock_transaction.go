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

// transaction runs a script in this process, for a server that forbids scripts. It WATCHes the keys of the script, reads them and
// runs the script here. Then it makes the writes by MULTI/EXEC, which does nothing if one of the keys has changed since it was read.
// So the same scripts work with and without scripts in the server.
//
// A script must not read its own writes, and must not use the reply to a write. Commands by redis.pcall are sent after the
// transaction, because the refusal of such a command would undo the transaction.
type transaction struct {
	run  script.Compiled
	keys int
}

// conflicts is the maximum number of attempts if other clients keep changing the keys.
const conflicts = 5

var errConflict = fmt.Errorf("%w: other nodes keep changing the election's keys", elector.ErrRefused)

// DoContext runs the script as redis.Script does. The first key of the script is the lock key.
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

// state has the values of an election's keys at one moment, and the writes that a script wants to make.
type state struct {
	replies          map[string]any               // the replies by the command
	hashes           map[string]map[string]string // the hashes by the key
	writes, attempts []redisconn.Command
}

// readAll WATCHes and reads the keys of a script. It does not WATCH the control hash, because every standby keeps writing to it. An order
// that arrives between the reading and the writes counts as given after the writes.
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
		case refused && c.Name != "INFO": // a server may forbid INFO
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

// line returns a command as one text, which is the key of its reply in a map.
func line(c redisconn.Command) string {
	return strings.TrimSpace(c.Name + " " + fmt.Sprintln(c.Args...))
}

// call answers a command of the script with a value that was read before. It collects the commands that write, which are sent later.
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
	case "PERSIST": // a script may write into a full memory after PERSIST, but a transaction may not
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

// exec makes the writes in one transaction. It returns false if a WATCHed key has changed. Without writes it only ends the WATCH.
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
		// The lease may expire after the WATCH. Redis does not count that as a change, so EXEC succeeds.
		if extended, ok := r.(int64); ok && extended == 0 && writes[i].Name == "PEXPIRE" {
			return false, nil
		}
	}
	return true, err
}

// attempt sends commands that Redis may forbid to this user (history, wake-ups). It ignores refusals, and returns only errors of the
// connection.
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
