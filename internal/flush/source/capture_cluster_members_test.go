package source

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
)

// change returns the n-th change of a key.
func (c *clusterCapture) change(key string, n int) []any {
	gone := n%5 == 0
	member := fmt.Sprint("m", rand.IntN(30))
	switch c.options.Value {
	case "set":
		switch {
		case n%40 == 0:
			return []any{"DEL", key}
		case gone:
			return []any{"SREM", key, member, fmt.Sprint("m", rand.IntN(30))}
		}
		return []any{"SADD", key, member, fmt.Sprint("n", n)}
	case "zset":
		switch {
		case n%40 == 0:
			return []any{"DEL", key}
		case gone:
			return []any{"ZPOPMIN", key, 2}
		}
		return []any{"ZADD", key, n, member, n, fmt.Sprint("n", n)}
	}
	if gone {
		return []any{"DEL", key}
	}
	return []any{"SET", key, n}
}

// rowsOf returns the rows of a key. It returns none if the key is not at the master of its slot.
func (c *clusterCapture) rowsOf(key string) map[string]string {
	rows, id := map[string]string{}, strings.TrimPrefix(key, "s:")
	_, err := c.clusterRig.store.Run(c.clusterRig.t.Context(), key, func(conn redis.Conn) (any, error) {
		switch c.options.Value {
		case "set":
			members, err := redis.Strings(conn.Do("SMEMBERS", key))
			for _, member := range members {
				rows[id+"|"+member] = "-"
			}
			return nil, err
		case "zset":
			scores, err := redis.StringMap(conn.Do("ZRANGE", key, 0, -1, "WITHSCORES"))
			for member, score := range scores {
				rows[id+"|"+member] = score
			}
			return nil, err
		}
		value, err := redis.String(conn.Do("GET", key))
		if err == nil {
			rows[id] = value
		}
		return nil, err
	})
	if err != nil && !errors.Is(err, redis.ErrNil) {
		c.clusterRig.t.Fatal(err)
	}
	return rows
}

// fillMembers fills sets or sorted sets.
func (c *clusterCapture) fillMembers(keys, members int) {
	for i := range keys {
		args := []any{fmt.Sprintf("s:%d", i)}
		for m := range members {
			if c.options.Value == "zset" {
				args = append(args, m)
			}
			args = append(args, fmt.Sprint("m", m))
		}
		c.do(map[string]string{"set": "SADD", "zset": "ZADD"}[c.options.Value], args...)
	}
}

// A set moves between any two steps of the batch that replaces its rows, and changes at its new master. So the rows are listed and the
// members searched for at one master, and the set is read at another.
func TestASetThatMovesWithinItsBatchIsExact(t *testing.T) {
	for _, value := range []string{"set", "zset"} {
		asked := map[string][]string{"set": {"before SISMEMBER", "before SSCAN"}, "zset": {"before ZSCORE", "before ZSCAN"}}[value]
		for _, step := range append(asked, "staged", "rows-found", "page-read", "applied") {
			t.Run(value+", "+step, func(t *testing.T) {
				t.Parallel()
				c := newClusterCapture(t)
				c.ofMembers(value)
				c.fillMembers(8, 40)
				c.now()
				c.do(map[string]string{"set": "SREM", "zset": "ZREM"}[value], "s:3", "m1", "m2")
				c.do(map[string]string{"set": "SADD", "zset": "ZADD"}[value], map[string][]any{
					"set": {"s:3", "new"}, "zset": {"s:3", 1, "new"}}[value]...)
				moved := false
				c.watch(at(step, func() {
					moved = true
					if err := c.moveAway("s:3"); err != nil {
						t.Error(err)
					}
					c.do(map[string]string{"set": "SREM", "zset": "ZREM"}[value], "s:3", "m3", "new")
				}))
				testsupport.AwaitNoError(t, "the set moves at the step", func() error {
					err := c.run(t.Context())
					switch {
					case moved:
						return nil
					case err != nil:
						return err
					}
					return errors.New("a run has ended, and the step was not taken")
				})
				c.watch(nil)
				c.settles()
			})
		}
	}
}
