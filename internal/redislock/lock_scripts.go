package redislock

import (
	"embed"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
	"baton/internal/redislock/script"
)

//go:embed *.lua
var luaFiles embed.FS

// lockScripts are the scripts that touch the lock key.
type lockScripts struct {
	acquire, renew, extend, release, raise, breaks *redis.Script
}

var (
	stringScripts   = loadLockScripts(script.String)
	redissonScripts = loadLockScripts(script.Redisson)
)

func loadLockScripts(f script.Format) *lockScripts {
	load := func(name string, keys int) *redis.Script {
		return redis.NewScript(keys, f.Lua()+redisconn.Lua(luaFiles, "lock_lib", name))
	}
	return &lockScripts{
		acquire: load("lock_acquire", 6), renew: load("lock_renew", 6), extend: load("lock_extend", 1), release: load("lock_release", 4),
		raise: load("lock_raise", 2), breaks: load("lock_break", 4),
	}
}

// scriptsOf are those of the format; the zero Format is String.
func scriptsOf(f script.Format) *lockScripts {
	if f == script.Redisson {
		return redissonScripts
	}
	return stringScripts
}
