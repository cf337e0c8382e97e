package site

import (
	"baton/internal/config"
	"baton/internal/redislock"
	"baton/internal/redislock/lua"
	"baton/internal/redislock/script"
)

// LockOptions returns the options of the lock that the configuration names. It does not set the options that describe the node in the list
// of nodes.
func LockOptions(c config.Config) redislock.LockOptions {
	o := redislock.LockOptions{
		Key: c.Election.LockKey, NodeID: c.Node.ID, TTL: c.Election.TTL, Format: script.Format(c.Election.LockFormat),
		WaitReplicas: c.Election.WaitReplicas,
	}
	if c.Election.Acquire == config.AcquireSetNX {
		o.Interpreter = lua.Compile
	}
	return o
}
