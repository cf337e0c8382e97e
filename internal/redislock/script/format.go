// Package script has names that the lock and the ledger share in Redis: the keys of an election, and the formats of its lock.
package script

import _ "embed" // of the formats' scripts

// Format says in which form the lock key contains the owner.
type Format string

// These are the formats of the lock key.
const (
	// String is a string key with only the owner, as SET NX creates it.
	String Format = "string"
	// Redisson is the hash of Redisson's RLock. With this format baton and a Java service exclude each other if they lock the same name.
	Redisson Format = "redisson"
)

// Formats returns all formats.
func Formats() []Format { return []Format{String, Redisson} }

var (
	//go:embed format_string.lua
	stringLua string
	//go:embed format_redisson.lua
	redissonLua string
)

// Lua returns the definitions of the functions holder, take and drop for the lock in KEYS[1], in this format. The code of each
// script follows this text, and is the same for every format. The format "" means String.
func (f Format) Lua() string {
	if f == Redisson {
		return redissonLua
	}
	return stringLua
}
