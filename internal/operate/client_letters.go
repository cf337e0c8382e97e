package operate

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
)

func (f LetterFilter) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"job": f.Job, "database": f.Database, "text": f.Text, "reason": f.Reason} {
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

// Letters are dead letters, the newest first, at most n and not more than 1000.
func (c *Client) Letters(ctx context.Context, f LetterFilter, n int) ([]Letter, error) {
	if f.ID != "" {
		l, err := get[Letter](ctx, c, LetterFilter{Database: f.Database}.query(), "dead-letters", f.ID)
		return []Letter{l}, err
	}
	const most = 1000
	q := f.query()
	q.Set("n", strconv.Itoa(min(n, most)))
	if f.Whole {
		q.Set("whole", "true")
	}
	reply, err := get[struct {
		Letters []Letter
		Error   string
	}](ctx, c, q, "dead-letters")
	return reply.Letters, partly(err, reply.Error)
}

// partly is an error, also one of a part of an answer.
func partly(err error, text string) error {
	if err == nil && text != "" {
		return errors.New(text)
	}
	return err
}

// LetterKeys names the dead letters that there are now. Of too many none are named.
func (c *Client) LetterKeys(ctx context.Context, f LetterFilter, _ int) ([]LetterKey, error) {
	reply, err := get[struct {
		Letters []LetterKey
		More    bool
	}](ctx, c, f.query(), "dead-letters", "keys")
	if err == nil && reply.More {
		const instead = "pick some by --since, --older-than or --text, or do it where the configuration is, without --server"
		return nil, fmt.Errorf("%w: there are more than %d such dead letters: %s", ErrDeadUsage, len(reply.Letters), instead)
	}
	return reply.Letters, err
}

// Reasons counts dead letters by job and reason, the most frequent first.
func (c *Client) Reasons(ctx context.Context, f LetterFilter) ([]LetterReason, error) {
	reply, err := get[struct {
		Reasons []LetterReason
		Error   string
	}](ctx, c, f.query(), "dead-letters", "reasons")
	return reply.Reasons, partly(err, reply.Error)
}

// Waiting counts the dead letters of each job that has some.
func (c *Client) Waiting(ctx context.Context) (map[string]int64, error) {
	reasons, err := c.Reasons(ctx, LetterFilter{})
	waiting := map[string]int64{}
	for _, r := range reasons {
		waiting[r.Job] += r.Letters
	}
	return waiting, err
}
