// Package lua makes the election of baton/pkg/baton work with a Redis that forbids scripts. It contains a Lua interpreter. It is a separate
// package, so that programs that do not need the interpreter do not contain it:
//
//	lock := baton.Lock{Key: "reports", Redis: where, Interpreter: lua.Interpreter}
package lua

import (
	"baton/internal/redislock/lua"
	"baton/pkg/baton"
)

// Interpreter is the value for [baton.Lock.Interpreter].
var Interpreter baton.Interpreter = lua.Compile
