package redisledger

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
)

// The hash {K}:stages belongs to a node's own lock. Its fields are the names of the keys that the installation's flushes use as
// stages now, or have used. The value of a field is the job of the flush. The field with the empty name has the edition of the list, a
// random text that is new with each noted key.
const stagesEdition = ""

var forgetScript = redis.NewScript(1, redisconn.Lua(luaFiles, "stages_forget"))

// NoteStages records for each key which job stages it. The argument jobs maps the keys to their jobs.
func (l *Ledger) NoteStages(ctx context.Context, jobs map[string]string) error {
	const chunk = 1000 // because Redis serves no other client during a command
	keys := make([]string, 0, len(jobs))
	for key := range jobs {
		keys = append(keys, key)
	}
	for some := range slices.Chunk(keys, chunk) {
		args := redis.Args{l.keys.Stages(), stagesEdition, rand.Text()}
		for _, key := range some {
			args = args.Add(key, jobs[key])
		}
		if _, err := l.store.Run(ctx, l.keys.Lock(), func(c redis.Conn) (any, error) {
			return redis.DoContext(c, ctx, "HSET", args...)
		}); err != nil {
			return fmt.Errorf("record stages in %q: %w", l.keys.Stages(), err)
		}
	}
	return nil
}

// NotedStages returns the recorded job for each key, and the edition of the list.
func (l *Ledger) NotedStages(ctx context.Context) (noted map[string]string, edition string, err error) {
	noted, err = redis.StringMap(l.store.Run(ctx, l.keys.Lock(), func(c redis.Conn) (any, error) {
		return redis.DoContext(c, ctx, "HGETALL", l.keys.Stages())
	}))
	if err != nil {
		return nil, "", fmt.Errorf("read stages from %q: %w", l.keys.Stages(), err)
	}
	edition = noted[stagesEdition]
	delete(noted, stagesEdition)
	return noted, edition, nil
}

// ForgetStages removes the records of the given keys, unless the list has another edition. In the given edition, these keys have neither a
// stage nor a job. In a later edition, they may have a job again.
func (l *Ledger) ForgetStages(ctx context.Context, edition string, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	if _, err := l.script(ctx, forgetScript, redis.Args{l.keys.Stages(), edition}.AddFlat(keys)); err != nil {
		return fmt.Errorf("remove keys without a stage from %q: %w", l.keys.Stages(), err)
	}
	return nil
}
