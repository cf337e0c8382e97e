// Package lua runs the lock's scripts in this process. It is a separate package, so that a program that embeds the election contains a
// Lua interpreter only if it imports this package.
package lua

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"baton/internal/redislock/script"

	"github.com/gomodule/redigo/redis"
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// compiled caches compiled scripts by their text, because all locks have the same scripts.
var compiled sync.Map

// Compile implements [script.Interpreter].
func Compile(text string) script.Compiled {
	if known, ok := compiled.Load(text); ok {
		return known.(script.Compiled)
	}
	chunk, err := parse.Parse(strings.NewReader("local KEYS, ARGV = ... "+text), "script")
	if err != nil {
		panic(err) // the script is a part of this program, so an error is a mistake in the program
	}
	code, err := lua.Compile(chunk, "script")
	if err != nil {
		panic(err)
	}
	first, _ := compiled.LoadOrStore(text, script.Compiled(func(keys, args []string, call caller) (any, error) {
		return run(code, keys, args, call)
	}))
	return first.(script.Compiled)
}

// caller answers the commands that a script sends by redis.call or, if protected is true, by redis.pcall.
type caller = func(protected bool, name string, args ...string) (any, error)

func run(code *lua.FunctionProto, keys, args []string, call caller) (any, error) {
	l := lua.NewState(lua.Options{
		SkipOpenLibs: true, RegistrySize: 512, RegistryMaxSize: 64 << 10, CallStackSize: 64, MinimizeStackMemory: true,
	})
	defer l.Close()
	lua.OpenBase(l)
	lua.OpenString(l)
	lua.OpenMath(l)
	l.SetTop(0)
	l.SetGlobal("tonumber", l.NewFunction(toNumber)) // the tonumber of this Lua interpreter reads no integers above 2^63
	api := l.NewTable()
	for name, protected := range map[string]bool{"call": false, "pcall": true} {
		l.SetField(api, name, l.NewFunction(func(l *lua.LState) int { return answer(l, call, protected) }))
	}
	l.SetField(api, "error_reply", l.NewFunction(func(l *lua.LState) int {
		l.Push(toLua(l, redis.Error(l.CheckString(1))))
		return 1
	}))
	l.SetGlobal("redis", api)
	l.Push(l.NewFunctionFromProto(code))
	l.Push(tableOf(l, keys))
	l.Push(tableOf(l, args))
	if err := l.PCall(2, 1, nil); err != nil {
		return nil, fmt.Errorf("a script of the lock failed in this process, where baton runs it without Redis: %w", err)
	}
	reply := fromLua(l.Get(-1))
	if refusal, refused := reply.(redis.Error); refused {
		return nil, refusal
	}
	return reply, nil
}

func answer(l *lua.LState, call caller, protected bool) int {
	args := make([]string, 0, l.GetTop())
	for i := 2; i <= l.GetTop(); i++ {
		args = append(args, l.CheckString(i))
	}
	reply, err := call(protected, l.CheckString(1), args...)
	if err != nil {
		l.RaiseError("%v", err)
	}
	l.Push(toLua(l, reply))
	return 1
}

// toNumber works like tonumber in Redis, which also reads a float in the syntax of C.
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

func tableOf(l *lua.LState, texts []string) *lua.LTable {
	t := l.NewTable()
	for _, text := range texts {
		t.Append(lua.LString(text))
	}
	return t
}

// toLua and fromLua convert replies to values of Lua and back, in the same way as Redis.
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
