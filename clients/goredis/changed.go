// Package changed writes to Redis, by go-redis, what baton flushes: hashes and counters with an index
// of those that have changed. Copy this file; it needs github.com/redis/go-redis/v9 and no more.
//
// Every change and its mark are one MULTI/EXEC, the mark last: Redis has both or neither, whatever
// becomes of this process. An error from a connection (not a [redis.Error]) may come after EXEC was
// carried out. Then a hash may be saved again; a count may be in Redis, and counts twice if it is
// sent again. go-redis sends CountField again by itself, unless the client is made with MaxRetries: -1.
package changed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Index is the key that baton's configuration has in changed.
type Index struct {
	Key    string
	Scored bool // it is a ZSET, scored by the time of the change in milliseconds, and not a SET
}

// Save sets fields of the hash key, and marks its id as changed. Other fields stay.
func Save(ctx context.Context, c redis.Cmdable, key string, fields map[string]any, index Index, id string) error {
	for field, value := range fields {
		if value == nil {
			return fmt.Errorf("changed: field %s of %s is nil: leave it out, or send HDEL", field, key)
		}
	}
	return Change(ctx, c, index, []string{id}, func(tx redis.Pipeliner) { tx.HSet(ctx, key, fields) })
}

// Remove deletes the hash key, and marks its id as changed: the flush deletes the row.
func Remove(ctx context.Context, c redis.Cmdable, key string, index Index, id string) error {
	return Change(ctx, c, index, []string{id}, func(tx redis.Pipeliner) { tx.Unlink(ctx, key) })
}

// Count adds n to the counter key, which is that of id, and marks id as changed.
func Count(ctx context.Context, c redis.Cmdable, key string, n int64, index Index, id string) error {
	return Change(ctx, c, index, []string{id}, func(tx redis.Pipeliner) { tx.IncrBy(ctx, key, n) })
}

// CountField adds n to a field of one of the hashes key:0 to key:<shards-1>, always the same one for
// a field. These counters need no index: see [0-15] in baton's configuration.
func CountField(ctx context.Context, c redis.Cmdable, key string, shards int, field string, n int64) error {
	return c.HIncrBy(ctx, fmt.Sprintf("%s:%d", key, Shard(field, shards)), field, n).Err()
}

// Change sends what commands adds, and marks the ids as changed, all in one MULTI and one round
// trip. Redis serves nobody else meanwhile: some hundred rows at a time.
func Change(ctx context.Context, c redis.Cmdable, index Index, ids []string, commands func(tx redis.Pipeliner)) error {
	if len(ids) == 0 {
		return errors.New("changed: no ids to mark")
	}
	_, err := c.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		commands(tx)
		if index.Scored {
			marks := make([]redis.Z, len(ids))
			for i, id := range ids {
				marks[i] = redis.Z{Score: float64(time.Now().UnixMilli()), Member: id}
			}
			return tx.ZAdd(ctx, index.Key, marks...).Err()
		}
		marks := make([]any, len(ids))
		for i, id := range ids {
			marks[i] = id
		}
		return tx.SAdd(ctx, index.Key, marks...).Err()
	})
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
