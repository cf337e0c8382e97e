package redisstore

import (
	"context"
	"fmt"

	"github.com/gomodule/redigo/redis"
)

// command is one command of a pipeline.
type command struct {
	name string
	args []any
}

// String is the command for a message: its name and its key. What else it carries
// may be long, binary or nobody's business.
func (c command) String() string {
	if len(c.args) == 0 {
		return c.name
	}
	return fmt.Sprintf("%s %v", c.name, c.args[0])
}

// sendAll queues commands; receiveAll sends what is queued.
func sendAll(c redis.Conn, commands ...command) error {
	for _, cmd := range commands {
		if err := c.Send(cmd.name, cmd.args...); err != nil {
			return err
		}
	}
	return nil
}

// receiveAll flushes what was sent and returns one reply for each command. A
// command's own error stands in its place, as a redis.Error.
func receiveAll(ctx context.Context, c redis.Conn) ([]any, error) {
	return redis.Values(redis.DoContext(c, ctx, ""))
}
