// Package changed writes to Redis, by redigo, what baton flushes: hashes and counters with an index
// of those that have changed. Copy this file; it needs github.com/gomodule/redigo and no more.
//
// Every change and its mark are one MULTI/EXEC, the mark last: Redis has both or neither, whatever
// becomes of this process. An error from a connection (not a [redis.Error]) may come after EXEC was
// carried out. Then a hash may be saved again; a count may be in Redis, and counts twice if it is
// sent again. Redigo itself sends nothing twice.
//
// A connection is for one goroutine at a time, and for no WATCH or MULTI of your own meanwhile.
package changed

import (
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Index is the key that baton's configuration has in changed.
type Index struct {
	Key    string
	Scored bool // it is a ZSET, scored by the time of the change in milliseconds, and not a SET
}

// Save sets fields of the hash key, and marks its id as changed. Other fields stay.
func Save(c redis.Conn, key string, fields map[string]any, index Index, id string) error {
	for field, value := range fields {
		if value == nil {
			return fmt.Errorf("changed: field %s of %s is nil: leave it out, or send HDEL", field, key)
		}
	}
	return Change(c, index, []string{id}, func(send func(command string, args ...any)) {
		send("HSET", redis.Args{key}.AddFlat(fields)...)
	})
}

// Remove deletes the hash key, and marks its id as changed: the flush deletes the row.
func Remove(c redis.Conn, key string, index Index, id string) error {
	return Change(c, index, []string{id}, func(send func(command string, args ...any)) { send("UNLINK", key) })
}

// Count adds n to the counter key, which is that of id, and marks id as changed.
func Count(c redis.Conn, key string, n int64, index Index, id string) error {
	return Change(c, index, []string{id}, func(send func(command string, args ...any)) { send("INCRBY", key, n) })
}

// CountField adds n to a field of one of the hashes key:0 to key:<shards-1>, always the same one for
// a field. These counters need no index: see [0-15] in baton's configuration.
func CountField(c redis.Conn, key string, shards int, field string, n int64) error {
	_, err := c.Do("HINCRBY", fmt.Sprintf("%s:%d", key, Shard(field, shards)), field, n)
	return err
}

// Change sends what commands sends, and marks the ids as changed, all in one MULTI and one round
// trip. Redis serves nobody else meanwhile: some hundred rows at a time.
func Change(c redis.Conn, index Index, ids []string, commands func(send func(command string, args ...any))) error {
	if len(ids) == 0 {
		return errors.New("changed: no ids to mark")
	}
	var sending error
	send := func(command string, args ...any) {
		if sending == nil {
			sending = c.Send(command, args...)
		}
	}
	send("MULTI")
	commands(send)
	mark := redis.Args{index.Key}
	for _, id := range ids {
		if index.Scored {
			mark = mark.Add(time.Now().UnixMilli())
		}
		mark = mark.Add(id)
	}
	if index.Scored {
		send("ZADD", mark...)
	} else {
		send("SADD", mark...)
	}
	if sending != nil {
		return sending // a connection that could not send is closed: Redis forgets the MULTI
	}
	// What Redis refuses inside EXEC is in its reply, and no error of Do: a mark may be missing.
	replies, err := redis.Values(c.Do("EXEC"))
	for _, reply := range replies {
		if refused, ok := reply.(redis.Error); ok {
			err = errors.Join(err, refused)
		}
	}
	return err
}

// Shard is the CRC-16 of the text, as Redis Cluster has it, modulo shards.
func Shard(text string, shards int) int {
	var crc uint16
	for i := range len(text) {
		crc ^= uint16(text[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % shards
}
