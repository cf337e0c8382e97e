package staging

import (
	"embed"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
)

//go:embed *.lua
var luaFiles embed.FS

// load makes the embedded script name.lua, which takes that many keys.
func load(name string, keys int) *redis.Script {
	return redis.NewScript(keys, redisconn.Lua(luaFiles, name))
}
