package redisconn

import (
	"context"
	"slices"

	"github.com/gomodule/redigo/redis"
)

// Ask implements [Conn]. If a command belongs to another node, Ask sends only this command again, to that node. It does not do so for a
// question with brief replies, because the commands of such a question may be a transaction.
func (r *routed) Ask(ctx context.Context, q *Question) error {
	r.leave()
	if q.Brief != nil {
		return r.Conn.Ask(ctx, q)
	}
	var all *Answers
	var elsewhere []int
	first := *q
	first.Read = func(a *Answers) error {
		for i, reply := range a.Replies {
			if IsElsewhere(reply.Refusal) {
				elsewhere = append(elsewhere, i)
			}
		}
		if len(elsewhere) == 0 {
			return q.Read(a)
		}
		all = a.clone()
		return nil
	}
	if err := r.Conn.Ask(ctx, &first); err != nil || all == nil {
		return err
	}
	for _, i := range elsewhere {
		found, err := r.follow(ctx, q.only(i).on, nil, all.Replies[i].Refusal)
		if refusal, ok := err.(redis.Error); ok { //nolint:errorlint // a reply is never wrapped
			all.Replies[i].Refusal = refusal
			continue
		}
		if err != nil {
			return err
		}
		all.insert(i, found.(*Answers))
	}
	return q.Read(all)
}

// only makes a new question from one command of q.
func (q *Question) only(command int) *Question {
	return &Question{Commands: 1, Nested: q.Nested, Write: func(buf []byte, _ int) []byte { return q.Write(buf, command) }}
}

// on sends a question with one command over the connection c. If the reply is a refusal, on returns the refusal as the error.
func (q *Question) on(ctx context.Context, c Conn) (any, error) {
	var answers *Answers
	q.Read = func(a *Answers) error {
		answers = a.clone()
		return nil
	}
	if err := c.Ask(ctx, q); err != nil {
		return nil, err
	}
	if refusal := answers.Replies[0].Refusal; refusal != "" {
		return nil, refusal
	}
	return answers, nil
}

// clone copies replies, because the originals are valid only until Question.Read returns.
func (t *Answers) clone() *Answers {
	return &Answers{All: slices.Clone(t.All), Sizes: slices.Clone(t.Sizes), Replies: slices.Clone(t.Replies)}
}

// insert replaces a refused reply with the only reply in the argument other. The argument at is the position of the refused reply.
func (t *Answers) insert(at int, other *Answers) {
	sizes, texts := 0, 0
	for _, r := range t.Replies[:at] {
		sizes += r.Sizes
	}
	for _, size := range t.Sizes[:sizes] {
		texts += max(0, size)
	}
	t.Sizes = slices.Insert(t.Sizes, sizes, other.Sizes...)
	t.All = slices.Insert(t.All, texts, other.All...)
	t.Replies[at] = other.Replies[0]
}
