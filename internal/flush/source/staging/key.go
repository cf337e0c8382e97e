package staging

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/redisconn"
)

// These errors of a source need a decision of an operator. Use errors.Is to match them.
var (
	// ErrWrongType means that a key has another Redis type than its source needs.
	ErrWrongType = errors.New("flush: key has the wrong type")
	// ErrBrokenStage means that a stage and its id do not match, because another program has written to one of their keys.
	ErrBrokenStage = errors.New("flush: stage is broken")
)

// largeStage is the minimum number of records of a large stage. Redis needs many milliseconds to shrink the hash table of such a stage.
// Therefore Remove keeps the last records of a large stage: see stage_remove.lua.
const largeStage = 1 << 18

// Key is a live key and its stage. A source freezes pending changes in the stage. The live key, the stage and the key "meta", which
// contains the stage's id, are in the same slot. They have no TTL.
type Key struct {
	Store *redisconn.Store
	Job   string
	Live  string
	Types [2]string // the Redis types that a live key may have; the second may be ""
	Parts int       // the number of records in a part; 0 if records are removed one by one
	Large int       // the minimum number of records of a large stage: see stage_remove.lua
}

// StageKey returns the key of the stage. It does not contain the job's name, so that a renamed job finds the stage that it made under its
// old name.
func (k Key) StageKey() string { return redisconn.SlotPrefix(k.Live) + ":baton:stage" }

// MetaKey returns the key with the id of the stage.
func (k Key) MetaKey() string { return redisconn.SlotPrefix(k.Live) + ":baton:meta" }

// IndexKey returns the key that lists counters whose counts must still be moved to the stage. Only counters that each have their own key
// need it.
func (k Key) IndexKey() string { return redisconn.SlotPrefix(k.Live) + ":baton:index" }

var (
	stageScript   = load("stage", 3)
	discardScript = load("stage_discard", 2)
	removeScript  = load("stage_remove", 2)
	markScript    = load("stage_mark", 3)
	backlogScript = load("stage_backlog", 2)
)

// Script takes a connection from the pool, and runs a script on it. The argument doing names the action in errors.
func (k Key) Script(ctx context.Context, doing string, s *redis.Script, args ...any) (any, error) {
	c, err := k.Store.Conn(ctx, k.Live)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	reply, err := s.DoContext(ctx, c, args...)
	return reply, k.Fail(doing, err)
}

// Fail adds the action, the key and the remedy to an error.
func (k Key) Fail(doing string, err error) error {
	var reply redis.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &reply) && strings.HasPrefix(string(reply), "WRONGTYPE"):
		err = fmt.Errorf("%w: does another program use %q or %q? %w", ErrWrongType, k.StageKey(), k.MetaKey(), err)
	default:
		err = redisconn.Explain(err)
	}
	return fmt.Errorf("%s %q for job %q: %w", doing, k.Live, k.Job, err)
}

// Name returns the live key.
func (k Key) Name() string { return k.Live }

// Stage freezes pending changes in a stage with the id newID, or finds the stage of an earlier run.
func (k Key) Stage(ctx context.Context, newID, _ string) (s flush.Stage, ok bool, err error) {
	verdict, reply, err := k.Freeze(ctx, stageScript,
		k.Live, k.StageKey(), k.MetaKey(), newID, k.Parts, k.Types[0], k.Types[1], k.Job, k.Large)
	if err != nil {
		return s, false, err
	}
	switch verdict {
	case "nothing":
		return s, false, nil
	case "staged":
		s, err = StageOf(reply, newID)
		return s, err == nil, err
	case "wrong_type":
		return s, false, k.WrongType(reply)
	case "orphan":
		return s, false, fmt.Errorf("%w: the stage %q has no id in %q, so baton cannot know whether its counts are in the database. "+
			"If they are, delete the stage: UNLINK %s. If not, give the stage an id, and baton flushes it: HSET %s id NEW-UUID parts 1",
			ErrBrokenStage, k.StageKey(), k.MetaKey(), k.StageKey(), k.MetaKey())
	default: // "lost"
		return s, false, fmt.Errorf("%w: %q names a batch, but the stage in %q is gone (evicted, or removed by another client). "+
			"Restore the stage, or accept its loss: DEL %s", ErrBrokenStage, k.MetaKey(), k.StageKey(), k.MetaKey())
	}
}

// Freeze runs a script that makes a stage or finds one. It returns the verdict, which is the first word of the script's reply, and the rest
// of the reply.
func (k Key) Freeze(ctx context.Context, s *redis.Script, args ...any) (verdict string, rest []any, err error) {
	reply, err := redis.Values(k.Script(ctx, "stage", s, args...))
	if err != nil {
		return "", nil, err
	}
	if rest, err = redis.Scan(reply, &verdict); err != nil {
		return "", nil, k.Fail("stage", err)
	}
	return verdict, rest, nil
}

// StageOf parses the stage in the rest of a reply that Freeze has returned.
func StageOf(rest []any, newID string) (s flush.Stage, err error) {
	_, err = redis.Scan(rest, &s.ID, &s.Parts, &s.Size, &s.Job)
	s.Resumed = s.ID != newID
	return s, err
}

// Backlog counts the pending changes, including staged ones.
func (k Key) Backlog(ctx context.Context) (int64, error) {
	return k.Count(ctx, k.WrongType, backlogScript, k.Live, k.StageKey(), k.Types[0], k.Types[1])
}

// Count runs a script that counts pending changes.
func (k Key) Count(ctx context.Context, wrongType func(reply []any) error, s *redis.Script, args ...any) (int64, error) {
	reply, err := redis.Values(k.Script(ctx, "count the pending changes in", s, args...))
	if err != nil {
		return 0, err
	}
	var verdict string
	if reply, err = redis.Scan(reply, &verdict); err != nil {
		return 0, err
	}
	if verdict == "wrong_type" {
		return 0, wrongType(reply)
	}
	var n int64
	_, err = redis.Scan(reply, &n)
	return n, err
}

// Discard removes the stage s and the key with its id. It returns flush.ErrStaleStage if the stage was removed before, perhaps by an
// earlier call whose reply was lost.
func (k Key) Discard(ctx context.Context, s flush.Stage) error {
	return k.DiscardWith(ctx, s, anyNumber)
}

// anyNumber, as an argument of DiscardWith, allows any number of records in the stage.
const anyNumber = -1

// DiscardWith removes the stage s, unless more records are left in it than the argument left allows. Passed records do not count:
// stage_remove.lua leaves them in a large stage, although they are flushed.
func (k Key) DiscardWith(ctx context.Context, s flush.Stage, left int) error {
	verdict, err := redis.String(k.Script(ctx, "discard the stage of", discardScript, k.StageKey(), k.MetaKey(), s.ID, left))
	if err != nil {
		return err
	}
	if verdict == "stale" {
		return k.Stale(s)
	}
	return nil
}

// MarkChanged adds ids to the live index. If neither the live index nor the stage shows which type the live index has, MarkChanged stages
// the ids under newID.
func (k Key) MarkChanged(ctx context.Context, newID string, ids []string) error {
	for len(ids) > 0 {
		some := ids[:fitting(ids, chunk)]
		ids = ids[len(some):]
		args := redis.Args{k.Live, k.StageKey(), k.MetaKey(), newID, k.Job}.AddFlat(some)
		reply, err := redis.Values(k.Script(ctx, "mark rows as changed in", markScript, args...))
		if err != nil {
			return err
		}
		var verdict string
		if reply, err = redis.Scan(reply, &verdict); err != nil {
			return fmt.Errorf("mark rows as changed in %q: %w", k.Live, err)
		}
		if verdict == "wrong_type" {
			return k.WrongType(reply)
		}
	}
	return nil
}

// Check fails with flush.ErrStaleStage unless the stage still has the id of s. An id is removed together with its stage and never used
// again. So if Check succeeds, all data that was read from the stage before the check belongs to the stage s, and the stage was complete.
// Check also returns the stage's type ("none" if the stage is empty).
func (k Key) Check(ctx context.Context, c redis.Conn, s flush.Stage) (kind string, err error) {
	const doing = "look up the stage of"
	if err := redisconn.SendAll(c, redisconn.Cmd("HGET", k.MetaKey(), "id"), redisconn.Cmd("TYPE", k.StageKey())); err != nil {
		return "", k.Fail(doing, err)
	}
	replies, err := redisconn.ReceiveAll(ctx, c)
	if err != nil {
		return "", k.Fail(doing, err)
	}
	id, err := redis.String(replies[0], nil)
	if err != nil && !errors.Is(err, redis.ErrNil) {
		return "", k.Fail(doing, err)
	}
	if id != s.ID {
		return "", k.Stale(s)
	}
	return redis.String(replies[1], nil)
}

// Stale returns the error that says that the stage s no longer exists.
func (k Key) Stale(s flush.Stage) error {
	return fmt.Errorf("batch %s of %q: %w", s.ID, k.Live, flush.ErrStaleStage)
}

// WrongType returns the error for a script's reply {"wrong_type", key, type}. The argument reply is that reply without
// its first element.
func (k Key) WrongType(reply []any) error {
	var key, found string
	if _, err := redis.Scan(reply, &key, &found); err != nil {
		return err
	}
	want := strings.TrimSuffix(k.Types[0]+" or a "+k.Types[1], " or a ")
	return fmt.Errorf("%w: %q is a %s, but job %q needs a %s: correct the key in the job's configuration, or RENAME this key",
		ErrWrongType, key, found, k.Job, want)
}

// New checks the settings of a source, and returns the Key of the source.
func New(store *redisconn.Store, jobName, live string, types ...string) (Key, error) {
	if err := redisconn.CheckKey(live); err != nil {
		return Key{}, err
	}
	if jobName == "" {
		return Key{}, errors.New("a flush source needs the name of its job")
	}
	k := Key{Store: store, Job: jobName, Live: live, Large: largeStage}
	copy(k.Types[:], types)
	return k, nil
}
