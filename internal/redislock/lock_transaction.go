package redislock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"baton/internal/elector"
	"baton/internal/redisconn"
	"baton/internal/redislock/script"

	"github.com/gomodule/redigo/redis"
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// transaction runs a script in this process, for a server that forbids scripts: it WATCHes and
// reads the keys of the script, runs it here, and makes its writes by MULTI/EXEC, which does
// nothing if one of the keys has changed meanwhile. So the rules are written once.
//
// A script must not read its own writes, nor use the reply of a write. Commands by redis.pcall
// are sent after the transaction, because a refusal would undo it.
type transaction struct {
	code *lua.FunctionProto
	keys int
}

func newTransaction(keys int, text string) transaction {
	chunk, err := parse.Parse(strings.NewReader("local KEYS, ARGV = ... "+text), "script")
	if err != nil {
		panic(err) // the text is the program's own
	}
	code, err := lua.Compile(chunk, "script")
	if err != nil {
		panic(err)
	}
	return transaction{code, keys}
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
		reply, err := t.run(s, texts[:t.keys], texts[t.keys:])
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

// state is what the keys of an election held at one moment, and what a script that saw it
// wants to write.
type state struct {
	replies          map[string]any               // by the command
	hashes           map[string]map[string]string // by the key
	writes, attempts []redisconn.Command
}

// readAll WATCHes and reads the keys of a script. It does not WATCH the control hash, to which
// every standby keeps writing: an order that arrives meanwhile counts as given a moment later.
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

// run runs the script on the state that was read, and collects its writes.
func (t transaction) run(s *state, keys, args []string) (any, error) {
	l := lua.NewState(lua.Options{
		SkipOpenLibs: true, RegistrySize: 512, RegistryMaxSize: 64 << 10, CallStackSize: 64, MinimizeStackMemory: true,
	})
	defer l.Close()
	lua.OpenBase(l)
	lua.OpenString(l)
	lua.OpenMath(l)
	l.SetTop(0)
	l.SetGlobal("tonumber", l.NewFunction(toNumber)) // Lua's own here knows no integers beyond 2^63
	api := l.NewTable()
	l.SetField(api, "call", l.NewFunction(func(l *lua.LState) int { return s.call(l, false) }))
	l.SetField(api, "pcall", l.NewFunction(func(l *lua.LState) int { return s.call(l, true) }))
	l.SetField(api, "error_reply", l.NewFunction(func(l *lua.LState) int {
		l.Push(toLua(l, redis.Error(l.CheckString(1))))
		return 1
	}))
	l.SetGlobal("redis", api)
	l.Push(l.NewFunctionFromProto(t.code))
	l.Push(toLua(l, anys(keys)))
	l.Push(toLua(l, anys(args)))
	if err := l.PCall(2, 1, nil); err != nil {
		return nil, fmt.Errorf("a script of the lock fails without a server: %w", err)
	}
	reply := fromLua(l.Get(-1))
	if refusal, refused := reply.(redis.Error); refused {
		return nil, refusal
	}
	return reply, nil
}

// toNumber is tonumber as Redis has it: what C reads as a float.
func toNumber(l *lua.LState) int {
	text, isText := l.Get(1).(lua.LString)
	n, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
	switch {
	case !isText:
		l.Push(l.Get(1))
		if l.Get(1).Type() != lua.LTNumber {
			l.Push(lua.LNil)
		}
	case err != nil && !errors.Is(err, strconv.ErrRange):
		l.Push(lua.LNil)
	default:
		l.Push(lua.LNumber(n))
	}
	return 1
}

func anys(texts []string) []any {
	all := make([]any, len(texts))
	for i, text := range texts {
		all[i] = text
	}
	return all
}

// call is redis.call and, protected, redis.pcall.
func (s *state) call(l *lua.LState, protected bool) int {
	c := redisconn.Command{Name: l.CheckString(1)}
	for i := 2; i <= l.GetTop(); i++ {
		c.Args = append(c.Args, l.CheckString(i))
	}
	if reply, known := s.replies[line(c)]; known {
		l.Push(toLua(l, reply))
		return 1
	}
	switch c.Name {
	case "HGET", "HMGET":
		hash, known := s.hashes[l.CheckString(2)]
		if !known {
			break
		}
		fields := make([]any, 0, len(c.Args)-1)
		for _, field := range c.Args[1:] {
			if value, there := hash[field.(string)]; there {
				fields = append(fields, value)
			} else {
				fields = append(fields, nil)
			}
		}
		if c.Name == "HGET" {
			l.Push(toLua(l, fields[0]))
		} else {
			l.Push(toLua(l, fields))
		}
		return 1
	case "PERSIST": // makes room in a full memory, but not for a transaction
		return 0
	case "SET", "DEL", "HSET", "HSETNX", "HDEL", "PEXPIRE", "XADD", "PUBLISH":
		if protected {
			s.attempts = append(s.attempts, c)
		} else {
			s.writes = append(s.writes, c)
		}
		return 0
	}
	l.RaiseError("%s was not read beforehand", line(c))
	return 0
}

// toLua and fromLua convert replies as Redis does.
func toLua(l *lua.LState, reply any) lua.LValue {
	switch v := reply.(type) {
	case int64:
		return lua.LNumber(v)
	case string:
		return lua.LString(v)
	case []byte:
		return lua.LString(v)
	case redis.Error:
		t := l.NewTable()
		t.RawSetString("err", lua.LString(v))
		return t
	case []any:
		t := l.NewTable()
		for i, e := range v {
			t.RawSetInt(i+1, toLua(l, e))
		}
		return t
	}
	return lua.LFalse
}

func fromLua(value lua.LValue) any {
	switch v := value.(type) {
	case lua.LNumber:
		return int64(v)
	case lua.LString:
		return []byte(v)
	case *lua.LTable:
		if refusal, ok := v.RawGetString("err").(lua.LString); ok {
			return redis.Error(refusal)
		}
		var all []any
		for i := 1; v.RawGetInt(i) != lua.LNil; i++ {
			all = append(all, fromLua(v.RawGetInt(i)))
		}
		return all
	}
	return nil
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
