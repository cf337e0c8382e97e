package source

import (
	"context"
	"fmt"
	"slices"

	"github.com/gomodule/redigo/redis"
)

var markScript = loadScript("stage_mark", 3)

// markChunk is how many ids one script enters; ZADD has two arguments for each.
const markChunk = 1000

// Mark has rows flushed again, as if their hashes had just been changed: it enters
// their ids into the live index, or where nothing tells of which type that is, stages
// them. Doing so twice is harmless. newID is unique for ever, such as a UUID.
func (s *Hashes) Mark(ctx context.Context, newID string, ids []string) error {
	for some := range slices.Chunk(ids, markChunk) {
		args := []any{s.live, s.stage(), s.meta(), newID, s.job}
		for _, id := range some {
			args = append(args, id)
		}
		reply, err := redis.Values(s.script(ctx, "mark rows as changed in", markScript, args...))
		if err != nil {
			return err
		}
		var verdict string
		if reply, err = redis.Scan(reply, &verdict); err != nil {
			return fmt.Errorf("mark rows as changed in %q: %w", s.live, err)
		}
		if verdict == "wrong_type" {
			return s.wrongType(reply)
		}
	}
	return nil
}
