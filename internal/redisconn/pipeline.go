package redisconn

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomodule/redigo/redis"
)

// Command is one command of a pipeline.
type Command struct {
	Name string
	Args []any
}

// Cmd makes a Command.
func Cmd(name string, args ...any) Command { return Command{Name: name, Args: args} }

// String returns the command's name and key for a message. It leaves out other arguments, which may be long, binary or confidential.
func (c Command) String() string {
	if len(c.Args) == 0 {
		return c.Name
	}
	return fmt.Sprintf("%s %v", c.Name, c.Args[0])
}

// SendAll queues commands; [ReceiveAll] sends them.
func SendAll(c redis.Conn, commands ...Command) error {
	for _, cmd := range commands {
		if err := c.Send(cmd.Name, cmd.Args...); err != nil {
			return err
		}
	}
	return nil
}

// ReceiveAll sends the queued commands and returns one reply for each. An error reply is a redis.Error.
func ReceiveAll(ctx context.Context, c redis.Conn) ([]any, error) {
	return redis.Values(redis.DoContext(c, ctx, ""))
}

// AllDone sends the queued commands. It returns the error replies as one error.
func AllDone(ctx context.Context, c redis.Conn) error {
	replies, err := ReceiveAll(ctx, c)
	for _, r := range replies {
		if refused, ok := r.(redis.Error); ok {
			err = errors.Join(err, refused)
		}
	}
	return err
}
