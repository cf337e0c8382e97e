package redisstore

import (
	"errors"
	"fmt"
	"strings"

	"baton/internal/elector"

	"github.com/gomodule/redigo/redis"
)

// remedies say for the replies that an operator can do something about what that
// is. Redis' own text follows them.
var remedies = map[string]string{
	"WRONGTYPE":   "a key of the election has another type than it should: is it used by another program? Choose another election.lock_key, or delete the key",
	"NOAUTH":      "redis wants a password: set redis.password_file",
	"WRONGPASS":   "redis refuses the user or password: check redis.username and redis.password_file",
	"NOPERM":      "the redis user lacks a permission: grant it by ACL SETUSER",
	"READONLY":    "this redis is a replica: is redis.url the master's?",
	"LOADING":     "redis is loading its data: wait",
	"MASTERDOWN":  "this redis is a replica that has lost its master: wait for the failover",
	"CLUSTERDOWN": "the redis cluster does not serve this slot: wait for the failover",
	"NOREPLICAS":  "redis refuses writes for want of replicas (min-replicas-to-write)",
	"MISCONF":     "redis refuses writes because it cannot save to disk: is the disk full?",
	"OOM":         "redis refuses writes because its memory is full (maxmemory)",
	"BUSY":        "redis is busy with somebody's script",
	"ERR":         "redis refuses the command",
}

// explain adds to an error of Redis what to do about it. A reply that is an error
// means that the command was not done: such an error matches elector.ErrRefused.
// Every other error leaves open whether it was.
func explain(err error) error {
	var reply redis.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &reply):
		code, _, _ := strings.Cut(string(reply), " ")
		if strings.Contains(string(reply), "unauthenticated") {
			code = "NOAUTH" // what Redis answers to a long command before it answers NOAUTH
		}
		if remedy, ok := remedies[code]; ok {
			return fmt.Errorf("%w: %s: %w", elector.ErrRefused, remedy, err)
		}
		return fmt.Errorf("%w: %w", elector.ErrRefused, err)
	case strings.Contains(err.Error(), "redigo: "):
		// The client library has no sentinel for a reply that it cannot parse.
		return fmt.Errorf("the server's answer is not Redis' protocol: is this the right address? %w", err)
	}
	return err
}
