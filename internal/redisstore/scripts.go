package redisstore

import (
	"embed"

	"github.com/gomodule/redigo/redis"
)

//go:embed *.lua
var luaFiles embed.FS

// loadScript makes the embedded script name.lua, which takes that many keys. It
// runs at start-up only, where a name without a file is a programming error.
func loadScript(name string, keys int) *redis.Script {
	return redis.NewScript(keys, source(name))
}

func source(name string) string {
	src, err := luaFiles.ReadFile(name + ".lua")
	if err != nil {
		panic(err)
	}
	return string(src)
}

// Format is how the lock key is written.
type Format string

// The formats.
const (
	// String is a string key, the owner and nothing else: what SET NX makes.
	String Format = "string"
	// Redisson is the hash of Redisson's RLock: baton and Java services that lock
	// the same name exclude each other.
	Redisson Format = "redisson"
)

// redissonThread is the thread that our terms hold an RLock on.
const redissonThread = ":1"

// lockScripts are the scripts that touch the lock key. Each is the same text for
// every format, put after what the format knows: who holds it, take it, drop it.
type lockScripts struct {
	acquire, renew, extend, release, raise *redis.Script
}

var (
	stringScripts   = loadLockScripts(String)
	redissonScripts = loadLockScripts(Redisson)
)

func loadLockScripts(f Format) *lockScripts {
	load := func(name string, keys int) *redis.Script {
		return redis.NewScript(keys, source("format_"+string(f))+source("lock_lib")+source(name))
	}
	return &lockScripts{
		acquire: load("lock_acquire", 6), renew: load("lock_renew", 6), extend: load("lock_extend", 1), release: load("lock_release", 4),
		raise: load("lock_raise", 2),
	}
}

// scripts are those of the format; the zero Format is String.
func (f Format) scripts() *lockScripts {
	if f == Redisson {
		return redissonScripts
	}
	return stringScripts
}
