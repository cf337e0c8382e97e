// Package lua lets the election of baton/pkg/baton work on a Redis that forbids scripts. It brings
// a Lua along, and is a package of its own so that other programs get none:
//
//	lock := baton.Lock{Key: "reports", Redis: where, Interpreter: lua.Interpreter}
package lua

import (
	"baton/internal/redislock/lua"
	"baton/pkg/baton"
)

// Interpreter is for [baton.Lock.Interpreter].
var Interpreter baton.Interpreter = lua.Compile
