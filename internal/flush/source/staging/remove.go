package staging

import (
	"context"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/redisconn"
)

// chunk and chunkBytes limit the number of ids and bytes that one script removes, because Redis serves no other client while the script
// runs. For a stage of 5,000,000 ids the longest run of a script took 12.6 ms with 1,000 ids, and 9.5 ms with 400 ids. ZADD needs two
// arguments for each id.
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

// removeSome removes ids by one script or transaction. The result ours is false if the stage is no longer st.
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

// longID is the minimum length in bytes of an id that makes a script expensive. Lua copies the id a few times: for a megabyte that takes up
// to 30 ms, while SREM takes 0.3 ms.
const longID = 16 << 10

// removeLong removes ids without the script stage_remove.lua. WATCH replaces the script's check of the stage's id: if the stage is
// discarded, or gets another id, the transaction is not executed. The result done is false if the script must do the work: the stage has
// changed or is large, or the key is being moved to another node of a Cluster. The result done is also false if the user lacks a
// permission.
func (k Key) removeLong(ctx context.Context, st flush.Stage, ids []string) (ours, done bool, err error) {
	c, err := k.Store.Conn(ctx, k.Live)
	if err != nil {
		return false, false, err
	}
	defer c.Close() // returns it to the pool, and ends WATCH
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

// ask sends commands together and returns their replies. It returns nil if a command was refused.
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

// fitting returns how many of the ids one script may remove. The argument most limits the number.
func fitting(ids []string, most int) int {
	bytes := 0
	for i, id := range ids[:min(most, len(ids))] {
		if bytes += len(id); bytes > chunkBytes && i > 0 {
			return i
		}
	}
	return min(most, len(ids))
}
