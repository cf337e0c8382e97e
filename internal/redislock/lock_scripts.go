package redislock

import (
	"context"
	"embed"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
	"baton/internal/redislock/script"
)

//go:embed *.lua
var luaFiles embed.FS

// step is a script that uses the lock key. DoContext runs it atomically.
type step interface {
	DoContext(ctx context.Context, conn redis.Conn, keysAndArgs ...any) (any, error)
}

// lockScripts are the scripts that use the lock key.
type lockScripts struct{ acquire, renew, extend, release, raise, breaks step }

var (
	inServer = func(keys int, text string) step { return redis.NewScript(keys, text) }

	stringScripts   = loadLockScripts(script.String, inServer)
	redissonScripts = loadLockScripts(script.Redisson, inServer)
)

func loadLockScripts(f script.Format, run func(keys int, text string) step) *lockScripts {
	load := func(name string, keys int) step { return run(keys, f.Lua()+redisconn.Lua(luaFiles, "lock_lib", name)) }
	return &lockScripts{
		acquire: load("lock_acquire", 6), renew: load("lock_renew", 6), extend: load("lock_extend", 1), release: load("lock_release", 4),
		raise: load("lock_raise", 2), breaks: load("lock_break", 4),
	}
}

// scriptsOf returns the scripts for the format and the interpreter in the options. Without a Format it returns the scripts for the
// format String.
func scriptsOf(o LockOptions) *lockScripts {
	switch {
	case o.Interpreter != nil:
		return loadLockScripts(o.Format, func(keys int, text string) step { return transaction{o.Interpreter(text), keys} })
	case o.Format == script.Redisson:
		return redissonScripts
	}
	return stringScripts
}
