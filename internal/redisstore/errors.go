package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
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
	"EPOCH":       "an epoch, in redis or in a database's fence table, is no number below 2^53: it was written by hand; set it back to what it was",
	"ERR":         "redis refuses the command",
}

// explain adds to an error of Redis what to do about it. A reply that is an error
// means that the command was not done: such an error matches elector.ErrRefused.
// Every other error leaves open whether it was.
func explain(err error) error {
	var reply redis.Error
	var network *net.OpError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &reply):
		code, _, _ := strings.Cut(string(reply), " ")
		if strings.Contains(string(reply), "unauthenticated") {
			code = "NOAUTH" // what Redis answers to a long command before it answers NOAUTH
		}
		if remedy, ok := remedies[code]; ok {
			return fmt.Errorf("%s (%w: %w)", remedy, elector.ErrRefused, err)
		}
		return fmt.Errorf("%w: %w", elector.ErrRefused, err)
	case strings.Contains(err.Error(), "redigo: "):
		// The client library has no sentinel for a reply that it cannot parse.
		return fmt.Errorf("the server's answer is not Redis' protocol: is redis.url right? (%w)", err)
	case errors.As(err, &network) && network.Op == "dial":
		return fmt.Errorf("%w: is redis running there, and is redis.url right?", err)
	}
	return err
}

// misfit adds to an error which key of the election is of another type than it
// should be, because Redis' own message does not.
func (s *Store) misfit(ctx context.Context, k keys, err error) error {
	if !strings.Contains(err.Error(), "WRONGTYPE") {
		return err
	}
	conn, dialErr := s.Conn(ctx, k.lock())
	if dialErr != nil {
		return err // the first one matters more
	}
	defer conn.Close() // it goes back to the pool
	for _, key := range []struct{ name, kind string }{
		{k.lock(), "string"}, {k.term(), "hash"}, {k.nodes(), "hash"}, {k.control(), "hash"},
	} {
		kind, askErr := redis.String(redis.DoContext(conn, ctx, "TYPE", key.name))
		if askErr != nil {
			return err
		}
		if kind != "none" && kind != key.kind {
			return fmt.Errorf("key %q is a %s and should be a %s: %w", key.name, kind, key.kind, err)
		}
	}
	return err
}
