package rig

import "github.com/gomodule/redigo/redis"

// Pipelined sends n commands, which the function command makes, and reads the replies. It sends a few thousand commands before it reads
// their replies.
func Pipelined(c redis.Conn, n int, command func(i int) (name string, args []any)) error {
	const depth = 2000
	for lo := 0; lo < n; lo += depth {
		hi := min(lo+depth, n)
		for i := lo; i < hi; i++ {
			name, args := command(i)
			if err := c.Send(name, args...); err != nil {
				return err
			}
		}
		replies, err := redis.Values(c.Do(""))
		if err != nil {
			return err
		}
		for _, reply := range replies {
			if err, failed := reply.(redis.Error); failed {
				return err
			}
		}
	}
	return nil
}
