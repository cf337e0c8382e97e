package redislock

import (
	"slices"

	"baton/internal/redisconn"
	"baton/internal/redislock/script"
)

// lockCommands lists the commands of an election. In these commands, L is the lock key, W is its channel, and the letters T, Q, N, C
// and E are the other keys of the election.
var lockCommands = []string{
	"GET L", "SET L v PX 1", "DEL L", "PTTL L", "PEXPIRE L 1", "EXISTS L",
	"HGET T f", "HMGET T f", "HSET T f v", "EXISTS Q", "SET Q v PX 1", "HSCAN N 0", "HSET N f v", "HDEL N f",
	"HGET C f", "HMGET C f", "HSET C f v", "HDEL C f", "XADD E * f v", "XREVRANGE E + -", "PUBLISH W m", "SUBSCRIBE W", "TIME",
}

var lockScripted = []string{"EVAL s 2 L T", "EVALSHA s 2 L T"}

// Access lists the commands, keys and channels that a lock needs.
func Access(o LockOptions) redisconn.Access {
	commands := slices.Clone(lockCommands)
	if o.Interpreter == nil {
		commands = append(commands, lockScripted...)
	}
	if o.Format == script.Redisson {
		commands = append(commands, "HKEYS L")
	}
	k := script.KeysOf(o.Key)
	return redisconn.Access{
		Keys: []redisconn.KeyCommands{{
			Key: k.Lock(),
			Names: map[string]string{"L": k.Lock(), "T": k.Term(), "Q": k.Quarantine(), "N": k.Nodes(), "C": k.Control(),
				"E": k.Events(), "W": k.Wake()},
			Commands: commands,
		}},
		Consequence: "no node leads, or leaders cannot carry out every order",
		Shows:       "when a node wants to lead",
	}
}
