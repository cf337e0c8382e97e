package daemon

import (
	"baton/internal/config"
	"baton/internal/redislock"
	"baton/internal/redislock/script"
)

// lockOptions is this node's view of the lock that the configuration names; what
// the node tells of itself is not in it.
func lockOptions(c config.Config) redislock.LockOptions {
	return redislock.LockOptions{
		Key: c.Election.LockKey, NodeID: c.Node.ID, TTL: c.Election.TTL, Format: script.Format(c.Election.LockFormat),
		WithoutScripts: c.Election.Acquire == config.AcquireSetNX, WaitReplicas: c.Election.WaitReplicas,
	}
}
