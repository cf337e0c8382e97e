package source

import (
	"context"
	"errors"
	"fmt"

	"baton/internal/redisconn"

	"github.com/gomodule/redigo/redis"
)

// ask runs each command at the server of the key in its first argument (see [redisconn.ByMaster]), and returns the replies. If a key has
// another type than its command needs, the reply is an error (see isWrongType). Any other error ends the batch.
func (s *Scan) ask(ctx context.Context, c redisconn.Conn, commands []redisconn.Command) ([]any, error) {
	replies, indexes := make([]any, len(commands)), make([]int, len(commands))
	for i := range indexes {
		indexes[i] = i
	}
	key := func(i int) string { return commands[i].Args[0].(string) }
	return replies, redisconn.ByMaster(ctx, s.store, c, indexes, key, func(ctx context.Context, c redisconn.Conn, indexes []int) error {
		some := make([]redisconn.Command, len(indexes))
		for i, index := range indexes {
			some[i] = commands[index]
		}
		answers, err := askAt(ctx, c, some)
		if err != nil {
			return err
		}
		for i, index := range indexes {
			replies[index] = answers[i]
			if !redisconn.IsElsewhere(answers[i]) {
				continue
			}
			if replies[index], err = s.askAfter(ctx, some[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// askAfter runs a command on a key whose slot is being moved between two nodes.
func (s *Scan) askAfter(ctx context.Context, cmd redisconn.Command) (any, error) {
	reply, err := s.store.Run(ctx, cmd.Args[0].(string), func(c redis.Conn) (any, error) {
		return redis.DoContext(c, ctx, cmd.Name, cmd.Args...)
	})
	if refusal, ok := errors.AsType[redis.Error](err); ok && redisconn.Code(refusal) == "WRONGTYPE" {
		return refusal, nil
	}
	return reply, err
}

// askAt runs commands at one server.
func askAt(ctx context.Context, c redisconn.Conn, commands []redisconn.Command) ([]any, error) {
	if err := redisconn.SendAll(c, commands...); err != nil {
		return nil, err
	}
	replies, err := redisconn.ReceiveAll(ctx, c)
	if err != nil {
		return nil, err
	}
	if len(replies) != len(commands) {
		return nil, fmt.Errorf("redis answered %d of %d commands", len(replies), len(commands))
	}
	for i := range replies {
		if refusal, ok := replies[i].(redis.Error); ok && !redisconn.IsElsewhere(refusal) && !isWrongType(refusal) {
			return nil, refusal
		}
	}
	return replies, nil
}

// isWrongType reports whether a reply says that the key holds another type than the command needs.
func isWrongType(reply any) bool {
	refusal, ok := reply.(redis.Error)
	return ok && redisconn.Code(refusal) == "WRONGTYPE"
}
