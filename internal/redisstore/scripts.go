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
	src, err := luaFiles.ReadFile(name + ".lua")
	if err != nil {
		panic(err)
	}
	return redis.NewScript(keys, string(src))
}
