package site

import (
	"baton/internal/config"
	"baton/internal/redislock"
	"baton/internal/redislock/script"
)

// LockOptions is this node's view of the lock that the configuration names; what
// the node registers is not in it.
func LockOptions(c config.Config) redislock.LockOptions {
	return redislock.LockOptions{
		Key: c.Election.LockKey, NodeID: c.Node.ID, TTL: c.Election.TTL, Format: script.Format(c.Election.LockFormat),
		WithoutScripts: c.Election.Acquire == config.AcquireSetNX, WaitReplicas: c.Election.WaitReplicas,
	}
}
