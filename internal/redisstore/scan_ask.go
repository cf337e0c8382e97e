package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomodule/redigo/redis"
	"golang.org/x/sync/errgroup"
)

// ask runs commands whose first argument is their key, of a Cluster at all nodes that
// have some of them, and returns a reply for each. That a key has another type is a
// reply, errWrongType; any other error is everybody's.
func (s *Scan) ask(ctx context.Context, c redis.Conn, commands []command) ([]any, error) {
	if s.store.cluster == nil {
		return askAt(ctx, c, commands)
	}
	nodes := map[*server][]int{}
	for i, cmd := range commands {
		node, err := s.store.cluster.owner(ctx, keySlot(cmd.args[0].(string)))
		if err != nil {
			return nil, err
		}
		nodes[node] = append(nodes[node], i)
	}
	replies := make([]any, len(commands))
	all, ctx := errgroup.WithContext(ctx)
	for node, indexes := range nodes {
		all.Go(func() error { return s.askNode(ctx, node, commands, indexes, replies) })
	}
	return replies, all.Wait()
}

// askNode runs some of the commands at one node of a Cluster, and those whose keys
// have just left it where they are now.
func (s *Scan) askNode(ctx context.Context, node *server, commands []command, indexes []int, replies []any) error {
	c, err := node.borrow(ctx)
	if err != nil {
		return err
	}
	defer c.Close() // it goes back to the pool
	some := make([]command, len(indexes))
	for i, index := range indexes {
		some[i] = commands[index]
	}
	answers, err := askAt(ctx, c, some)
	if err != nil {
		return err
	}
	for i, index := range indexes {
		replies[index] = answers[i]
		if refusal, ok := answers[i].(redis.Error); !ok || !isElsewhere(refusal) {
			continue
		}
		if replies[index], err = s.askAfter(ctx, some[i]); err != nil {
			return err
		}
	}
	return nil
}

// askAfter runs a command on a key that is on its way between two nodes.
func (s *Scan) askAfter(ctx context.Context, cmd command) (any, error) {
	reply, err := s.store.run(ctx, cmd.args[0].(string), func(c redis.Conn) (any, error) {
		return redis.DoContext(c, ctx, cmd.name, cmd.args...)
	})
	var refusal redis.Error
	if errors.As(err, &refusal) && codeOf(refusal) == "WRONGTYPE" {
		return refusal, nil
	}
	return reply, err
}

// askAt runs commands at one server.
func askAt(ctx context.Context, c redis.Conn, commands []command) ([]any, error) {
	if err := sendAll(c, commands...); err != nil {
		return nil, err
	}
	replies, err := receiveAll(ctx, c)
	if err != nil {
		return nil, err
	}
	if len(replies) != len(commands) {
		return nil, fmt.Errorf("redis answered %d of %d commands", len(replies), len(commands))
	}
	for i := range replies {
		if refusal, ok := replies[i].(redis.Error); ok && !isElsewhere(refusal) && !isWrongType(refusal) {
			return nil, refusal
		}
	}
	return replies, nil
}

// isWrongType says of a reply that the key holds another type than the command is for.
func isWrongType(reply any) bool {
	refusal, ok := reply.(redis.Error)
	return ok && codeOf(refusal) == "WRONGTYPE"
}
