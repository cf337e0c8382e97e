// Package script names what lock and ledger share in Redis: the keys of an election and
// the formats of its lock.
package script

import _ "embed" // of the formats' scripts

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

// Formats are all of them.
func Formats() []Format { return []Format{String, Redisson} }

var (
	//go:embed format_string.lua
	stringLua string
	//go:embed format_redisson.lua
	redissonLua string
)

// Lua defines holder, take and drop of the lock in KEYS[1], in this format. The scripts are the
// same for every format and follow this text. The zero Format is String.
func (f Format) Lua() string {
	if f == Redisson {
		return redissonLua
	}
	return stringLua
}
