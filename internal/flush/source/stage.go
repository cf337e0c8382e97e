package source

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/redisconn"
)

// Errors of a source that an operator has to mend, matched by errors.Is.
var (
	// ErrWrongType: a key holds another type than its use needs.
	ErrWrongType = errors.New("flush: key has the wrong type")
	// ErrBrokenStage: a stage and its id do not belong together any more, so
	// somebody else wrote to them.
	ErrBrokenStage = errors.New("flush: stage is broken")
)

const (
	defaultPageRows     = 5000
	defaultMemoryBudget = 32 << 20
)

// largeStage is a set whose hash table Redis cannot make smaller within milliseconds.
const largeStage = 1 << 18

// stagedKey is a live key and its stage: where a source freezes what is pending.
// Both halves and the id ("meta") share the live key's slot. None has a TTL.
type stagedKey struct {
	store *redisconn.Store
	job   string
	live  string
	types [2]string // the Redis types that a live key may have; the second may be ""
	parts int       // records a part; 0 when records are removed one by one
	large int       // records from which on a stage is large: see stage_remove.lua
}

// The job's name is no part of these: a job that was renamed must find what it left.
func (k stagedKey) stage() string { return redisconn.SlotPrefix(k.live) + ":baton:stage" }
func (k stagedKey) meta() string  { return redisconn.SlotPrefix(k.live) + ":baton:meta" }

// index is where ids of plain counters wait for their counts to be moved to the stage.
func (k stagedKey) index() string { return redisconn.SlotPrefix(k.live) + ":baton:index" }

var (
	stageScript   = loadScript("stage", 3)
	discardScript = loadScript("stage_discard", 2)
	removeScript  = loadScript("stage_remove", 2)
	backlogScript = loadScript("stage_backlog", 2)
)

// script runs a script on a connection of its own.
func (k stagedKey) script(ctx context.Context, doing string, s *redis.Script, args ...any) (any, error) {
	c, err := k.store.Conn(ctx, k.live)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	reply, err := s.DoContext(ctx, c, args...)
	return reply, k.fail(doing, err)
}

// fail says of an error what was done to what, and what to do about it.
func (k stagedKey) fail(doing string, err error) error {
	var reply redis.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &reply) && strings.HasPrefix(string(reply), "WRONGTYPE"):
		err = fmt.Errorf("%w: does another program use %q or %q? %w", ErrWrongType, k.stage(), k.meta(), err)
	default:
		err = redisconn.Explain(err)
	}
	return fmt.Errorf("%s %q for job %q: %w", doing, k.live, k.job, err)
}

// Name is the live key.
func (k stagedKey) Name() string { return k.live }

// Stage freezes what is pending under newID, or finds what an earlier run froze.
func (k stagedKey) Stage(ctx context.Context, newID, _ string) (s flush.Stage, ok bool, err error) {
	verdict, reply, err := k.freeze(ctx, stageScript,
		k.live, k.stage(), k.meta(), newID, k.parts, k.types[0], k.types[1], k.job, k.large)
	if err != nil {
		return s, false, err
	}
	switch verdict {
	case "nothing":
		return s, false, nil
	case "staged":
		s, err = stageOf(reply, newID)
		return s, err == nil, err
	case "wrong_type":
		return s, false, k.wrongType(reply)
	case "orphan":
		return s, false, fmt.Errorf("%w: %q has no id in %q, so nobody can tell whether its counts are in the database. "+
			"If they are, UNLINK it; if not, HSET %s id NEW-UUID parts 1 has it flushed", ErrBrokenStage, k.stage(), k.meta(), k.meta())
	default: // lost
		return s, false, fmt.Errorf("%w: %q names a batch, but what was staged in %q is gone (evicted or removed by somebody). "+
			"Restore it, or give it up with DEL %s", ErrBrokenStage, k.meta(), k.stage(), k.meta())
	}
}

// freeze runs a script that stages, and parts its reply into the verdict and the rest.
func (k stagedKey) freeze(ctx context.Context, s *redis.Script, args ...any) (verdict string, rest []any, err error) {
	reply, err := redis.Values(k.script(ctx, "stage", s, args...))
	if err != nil {
		return "", nil, err
	}
	if rest, err = redis.Scan(reply, &verdict); err != nil {
		return "", nil, k.fail("stage", err)
	}
	return verdict, rest, nil
}

// stageOf reads what such a script says of the stage that it has made or found.
func stageOf(rest []any, newID string) (s flush.Stage, err error) {
	_, err = redis.Scan(rest, &s.ID, &s.Parts, &s.Size, &s.Job)
	s.Resumed = s.ID != newID
	return s, err
}

// Backlog counts the pending changes, staged ones included.
func (k stagedKey) Backlog(ctx context.Context) (int64, error) {
	return k.count(ctx, k.wrongType, backlogScript, k.live, k.stage(), k.types[0], k.types[1])
}

// count runs a script that counts what is pending.
func (k stagedKey) count(ctx context.Context, wrongType func(reply []any) error, s *redis.Script, args ...any) (int64, error) {
	reply, err := redis.Values(k.script(ctx, "count what is pending in", s, args...))
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

// Discard removes the stage of s and its id. flush.ErrStaleStage when it is gone
// already, be it by an earlier call whose reply was lost.
func (k stagedKey) Discard(ctx context.Context, s flush.Stage) error {
	return k.discard(ctx, s, anyNumber)
}

// anyNumber of records may be left in a stage that is discarded.
const anyNumber = -1

// discard removes a stage if no more than so many records are left in it, beside those
// that have passed.
func (k stagedKey) discard(ctx context.Context, s flush.Stage, left int) error {
	verdict, err := redis.String(k.script(ctx, "discard the stage of", discardScript, k.stage(), k.meta(), s.ID, left))
	if err != nil {
		return err
	}
	if verdict == "stale" {
		return k.stale(s)
	}
	return nil
}

// check fails with flush.ErrStaleStage unless the stage still has the id of s. As
// an id is removed together with its stage and never used again, whatever was
// read from the stage before a check that passes, was read from an intact stage.
// It also returns the stage's type ("none" once it is drained).
func (k stagedKey) check(ctx context.Context, c redis.Conn, s flush.Stage) (kind string, err error) {
	const doing = "look up the stage of"
	if err := redisconn.SendAll(c, redisconn.Cmd("HGET", k.meta(), "id"), redisconn.Cmd("TYPE", k.stage())); err != nil {
		return "", k.fail(doing, err)
	}
	replies, err := redisconn.ReceiveAll(ctx, c)
	if err != nil {
		return "", k.fail(doing, err)
	}
	id, err := redis.String(replies[0], nil)
	if err != nil && !errors.Is(err, redis.ErrNil) {
		return "", k.fail(doing, err)
	}
	if id != s.ID {
		return "", k.stale(s)
	}
	return redis.String(replies[1], nil)
}

func (k stagedKey) stale(s flush.Stage) error {
	return fmt.Errorf("batch %s of %q: %w", s.ID, k.live, flush.ErrStaleStage)
}

// wrongType reads the rest of a script's {"wrong_type", key, type}.
func (k stagedKey) wrongType(reply []any) error {
	var key, found string
	if _, err := redis.Scan(reply, &key, &found); err != nil {
		return err
	}
	want := strings.TrimSuffix(k.types[0]+" or a "+k.types[1], " or a ")
	return fmt.Errorf("%w: %q is a %s, job %q needs a %s there: correct the key in the job's configuration, or move what is in the way "+
		"with RENAME",
		ErrWrongType, key, found, k.job, want)
}

// newStagedKey checks what a source was asked for.
func newStagedKey(store *redisconn.Store, jobName, live string, types ...string) (stagedKey, error) {
	if err := redisconn.CheckKey(live); err != nil {
		return stagedKey{}, err
	}
	if jobName == "" {
		return stagedKey{}, errors.New("a flush source needs the name of its job")
	}
	k := stagedKey{store: store, job: jobName, live: live, large: largeStage}
	copy(k.types[:], types)
	return k, nil
}
