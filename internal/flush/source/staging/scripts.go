package staging

import (
	"embed"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
)

//go:embed *.lua
var luaFiles embed.FS

// load loads the embedded script name.lua. The argument keys is the number of keys that the script gets.
func load(name string, keys int) *redis.Script {
	return redis.NewScript(keys, redisconn.Lua(luaFiles, name))
}
