package source

import (
	"embed"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
)

//go:embed *.lua
var luaFiles embed.FS

// loadScript makes the embedded script name.lua, which takes that many keys.
func loadScript(name string, keys int) *redis.Script {
	return redis.NewScript(keys, redisconn.Lua(luaFiles, name))
}
