package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"baton/internal/operate"
)

func (f DeadFilter) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"job": f.Job, "database": f.Database, "text": f.Text} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.Within > 0 {
		q.Set("within", f.Within.String())
	}
	if f.Before > 0 {
		q.Set("older_than", f.Before.String())
	}
	return q
}

// List finds dead letters, the newest first, at most n and not more than 1000.
func (c *Client) List(ctx context.Context, f DeadFilter, n, cut int) ([]DeadLetter, error) {
	const most = 1000
	q := f.query()
	q.Set("n", strconv.Itoa(min(n, most)))
	if cut <= 0 {
		q.Set("whole", "true")
	}
	reply, err := get[struct {
		Letters []operate.Letter
		Error   string
	}](ctx, c, q, "dead-letters")
	letters := make([]DeadLetter, len(reply.Letters))
	for i, l := range reply.Letters {
		letters[i] = apiLetter(l)
	}
	return letters, partly(err, reply.Error)
}

// partly is an error, also one of a part of an answer.
func partly(err error, text string) error {
	if err == nil && text != "" {
		return errors.New(text)
	}
	return err
}

// Find is the one dead letter whose id is, or begins with, id.
func (c *Client) Find(ctx context.Context, id, database string) (DeadLetter, error) {
	l, err := get[operate.Letter](ctx, c, DeadFilter{Database: database}.query(), "dead-letters", id)
	return apiLetter(l), err
}

// Keys names the dead letters that there are now. Of too many none are named.
func (c *Client) Keys(ctx context.Context, f DeadFilter) ([]DeadKey, error) {
	reply, err := get[struct {
		Letters []DeadKey
		More    bool
	}](ctx, c, f.query(), "dead-letters", "keys")
	if err == nil && reply.More {
		return nil, fmt.Errorf("%w: there are more than %d such dead letters: pick some by --since, --older-than or --text, or do it where the configuration is, without --server", ErrDeadUsage, len(reply.Letters))
	}
	return reply.Letters, err
}

// Reasons counts dead letters by job and reason, the most frequent first.
func (c *Client) Reasons(ctx context.Context, f DeadFilter) ([]DeadReason, error) {
	reply, err := get[struct {
		Reasons []DeadReason
		Error   string
	}](ctx, c, f.query(), "dead-letters", "reasons")
	return reply.Reasons, partly(err, reply.Error)
}

// Waiting counts the dead letters of each job that has some.
func (c *Client) Waiting(ctx context.Context) (map[string]int64, error) {
	reasons, err := c.Reasons(ctx, DeadFilter{})
	waiting := map[string]int64{}
	for _, r := range reasons {
		waiting[r.Job] += r.Letters
	}
	return waiting, err
}

// replayedAtOnce are as many as a node replays within what an order gets.
const replayedAtOnce = 20

// Replay writes dead letters after all, and tells what became of each.
func (c *Client) Replay(ctx context.Context, keys []DeadKey, o ReplayOptions, told func(Replayed)) error {
	for len(keys) > 0 {
		some := keys[:min(replayedAtOnce, len(keys))]
		keys = keys[len(some):]
		out, err := c.order(ctx, map[string]any{"letters": some, "overwrite": o.Overwrite, "set": o.Set}, "dead-letters", "replay")
		for _, r := range out.Letters {
			told(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Drop removes dead letters for good and says how many were still there.
func (c *Client) Drop(ctx context.Context, keys []DeadKey, told func(done int)) (dropped int64, err error) {
	for done := 0; done < len(keys); {
		some := keys[done:min(done+dropChunk, len(keys))]
		out, err := c.order(ctx, map[string]any{"letters": some}, "dead-letters", "drop")
		dropped += out.Dropped
		if err != nil {
			return dropped, err
		}
		if done += len(some); told != nil {
			told(done)
		}
	}
	return dropped, nil
}
