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

// Letters returns at most n dead letters, but never more than 1000, the newest letter first.
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

// partly returns err. If err is nil and the argument text is not empty, it returns an error with this text, because a part of the answer
// failed.
func partly(err error, text string) error {
	if err == nil && text != "" {
		return errors.New(text)
	}
	return err
}

// LetterKeys returns the keys of all dead letters that exist now and match the filter. If there are too many letters, it returns an error
// and no keys.
func (c *Client) LetterKeys(ctx context.Context, f LetterFilter, _ int) ([]LetterKey, error) {
	reply, err := get[struct {
		Letters []LetterKey
		More    bool
	}](ctx, c, f.query(), "dead-letters", "keys")
	if err == nil && reply.More {
		const instead = "select fewer by --since, --older-than or --text, or run this without --server on a host with the configuration"
		return nil, fmt.Errorf("%w: there are more than %d such dead letters: %s", ErrDeadUsage, len(reply.Letters), instead)
	}
	return reply.Letters, err
}

// Reasons counts dead letters by job and reason, the most frequent reason first.
func (c *Client) Reasons(ctx context.Context, f LetterFilter) ([]LetterReason, error) {
	reply, err := get[struct {
		Reasons []LetterReason
		Error   string
	}](ctx, c, f.query(), "dead-letters", "reasons")
	return reply.Reasons, partly(err, reply.Error)
}

// Waiting returns the number of dead letters of each job that has dead letters.
func (c *Client) Waiting(ctx context.Context) (map[string]int64, error) {
	reasons, err := c.Reasons(ctx, LetterFilter{})
	waiting := map[string]int64{}
	for _, r := range reasons {
		waiting[r.Job] += r.Letters
	}
	return waiting, err
}
