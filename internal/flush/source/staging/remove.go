package staging

import (
	"context"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/redisconn"
)

// chunk and chunkBytes are the most ids and bytes per script: Redis serves no other client meanwhile. For a stage of 5,000,000 the
// longest script took 12.6 ms with 1,000 ids, and 9.5 ms with 400. ZADD has two arguments for each.
const chunk, chunkBytes = 400, 256 << 10

// Remove removes ids from the stage st.
func (k Key) Remove(ctx context.Context, st flush.Stage, ids []string) error {
	pace := redisconn.NewPace(chunk, chunkBytes).From(chunk)
	for len(ids) > 0 {
		some := ids[:fitting(ids, pace.Depth())]
		ids = ids[len(some):]
		began := time.Now()
		ours, err := k.removeSome(ctx, st, some)
		if err != nil {
			return err
		}
		pace.Learn(redisconn.Paced{Took: time.Since(began)})
		if !ours {
			return k.Stale(st)
		}
	}
	return nil
}

// removeSome removes ids by one command, if the stage is still st.
func (k Key) removeSome(ctx context.Context, st flush.Stage, ids []string) (ours bool, err error) {
	const doing = "remove flushed ids from the stage of"
	if len(ids[0]) >= longID {
		ours, done, err := k.removeLong(ctx, st, ids)
		if done || err != nil {
			return ours, k.Fail(doing, err)
		}
	}
	return redis.Bool(k.Script(ctx, doing, removeScript, redis.Args{k.StageKey(), k.MetaKey(), st.ID}.AddFlat(ids)...))
}

// longID is the length of an id, in bytes, from which on a script for it costs Redis much: Lua copies it a few times, and that takes up
// to 30 ms for a megabyte, where SREM takes 0.3 ms.
const longID = 16 << 10

// removeLong removes ids without the script. WATCH replaces the script's look at the id: if the stage is discarded, or gets another id,
// the transaction is not executed. If done is false, the script has to do it, and to judge: the stage has changed, or is a large one, the
// key is being moved to another node of a Cluster, or the user lacks a permission.
func (k Key) removeLong(ctx context.Context, st flush.Stage, ids []string) (ours, done bool, err error) {
	c, err := k.Store.Conn(ctx, k.Live)
	if err != nil {
		return false, false, err
	}
	defer c.Close() // it goes back to the pool, out of the transaction
	replies, err := ask(ctx, c, redisconn.Cmd("WATCH", k.MetaKey()), redisconn.Cmd("HMGET", k.MetaKey(), "id", "size"),
		redisconn.Cmd("TYPE", k.StageKey()), redisconn.Cmd("MULTI")) // if MULTI is refused, the next commands must not run
	if err != nil || replies == nil {
		return false, false, err
	}
	meta, _ := redis.Strings(replies[1], nil)
	remove, known := map[any]string{"set": "SREM", "zset": "ZREM"}[replies[2]]
	if !known || len(meta) != 2 || meta[0] != st.ID || meta[1] != "" {
		return false, false, nil
	}
	replies, err = ask(ctx, c, redisconn.Cmd(remove, redis.Args{k.StageKey()}.AddFlat(ids)...), redisconn.Cmd("EXEC"))
	return true, replies != nil && replies[1] != nil, err
}

// ask sends commands together; nil if one was refused.
func ask(ctx context.Context, c redis.Conn, commands ...redisconn.Command) ([]any, error) {
	if err := redisconn.SendAll(c, commands...); err != nil {
		return nil, err
	}
	replies, err := redisconn.ReceiveAll(ctx, c)
	for _, reply := range replies {
		if _, refused := reply.(redis.Error); refused {
			return nil, err
		}
	}
	return replies, err
}

// fitting is the number of ids for one script, at most most of them.
func fitting(ids []string, most int) int {
	bytes := 0
	for i, id := range ids[:min(most, len(ids))] {
		if bytes += len(id); bytes > chunkBytes && i > 0 {
			return i
		}
	}
	return min(most, len(ids))
}
