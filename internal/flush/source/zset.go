package source

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/source/paging"
	"baton/internal/flush/source/spec"
	"baton/internal/flush/source/staging"
	"baton/internal/redisconn"
)

// Zset reads the changed members of one sorted set. An index lists the changed members. Zset is a flush.Source. A member with its score is
// a row.
type Zset struct{ indexed }

// NewZset checks the options and does not connect. In the options, Key is the key of the sorted set, and Inputs may contain $member and
// $score.
func NewZset(store *redisconn.Store, o IndexedOptions) (*Zset, error) {
	for _, input := range o.Inputs {
		if input != row.InputMember && input != row.InputScore {
			return nil, fmt.Errorf("a sorted set has no input %q: use %s and %s", input, row.InputMember, row.InputScore)
		}
	}
	if err := checkBoard(o.Key, o.Changed); err != nil {
		return nil, err
	}
	of, err := newIndexed(store, o, &scores{redis: store, job: o.Job, key: o.Key, inputs: o.Inputs})
	if err != nil {
		return nil, err
	}
	return &Zset{of}, nil
}

// ReadMembers yields the records of the given members, in the given order, page by page.
func (s *Zset) ReadMembers(ctx context.Context, members []string, yield func([]row.Record) error) error {
	for pages := paging.NewFiller(s.bytes); len(members) > 0; {
		records, err := s.readRows(ctx, nil, members, &pages)
		if err == nil {
			err = yield(records)
		}
		if err != nil {
			return s.Fail("read members of", err)
		}
		members = members[len(records):]
	}
	return nil
}

// checkBoard refuses a configuration in which the index is the sorted set itself, because staging would rename the sorted set before its
// members are read.
func checkBoard(key, changed string) error {
	if key == changed {
		return fmt.Errorf("changed: %q is the sorted set itself, which the flush would remove from Redis: set `changed` to "+
			"the key of a set "+
			"of changed members", key)
	}
	_, err := spec.Named("zset").Keys(key)
	return err
}

// scores reads the scores of members.
type scores struct {
	redis  *redisconn.Store
	job    string
	key    string
	inputs []string
}

// readRows reads the scores of members, in the given order, until the page is full.
func (s *scores) readRows(ctx context.Context, _ redisconn.Conn, members []string, p *paging.Filler) ([]row.Record, error) {
	return p.Fill(members, func(members []string) ([]row.Record, error) {
		members = members[:cutTo(members, mostAsked)]
		texts, err := s.ask(ctx, members)
		if err != nil {
			return nil, err
		}
		records := make([]row.Record, len(members))
		for i, member := range members {
			records[i] = s.record(member, texts[i])
		}
		return records, nil
	})
}

// mostAsked limits the total length, in bytes, of the members in one command.
const mostAsked = 1 << 20

// cutTo returns how many of the texts together fit into the given number of bytes. It returns at least 1.
func cutTo(texts []string, bytes int) int {
	n := 0
	for ; n < len(texts); n++ {
		if bytes -= len(texts[n]); bytes < 0 && n > 0 {
			break
		}
	}
	return n
}

// ask reads the scores of members. The reply for a missing member is nil.
func (s *scores) ask(ctx context.Context, members []string) ([]any, error) {
	texts, err := redis.Values(s.redis.Run(ctx, s.key, func(c redis.Conn) (any, error) {
		return redis.DoContext(c, ctx, "ZMSCORE", redis.Args{s.key}.AddFlat(members)...)
	}))
	var refusal redis.Error
	if errors.As(err, &refusal) && redisconn.Code(refusal) == "WRONGTYPE" {
		return nil, fmt.Errorf("%w: %q is not a sorted set, but job %q needs a sorted set: correct the key in the job's configuration, or "+
			"RENAME this key", staging.ErrWrongType, s.key, s.job)
	}
	if err == nil && len(texts) != len(members) {
		err = fmt.Errorf("%d scores of %d members", len(texts), len(members))
	}
	return texts, err
}

func (s *scores) record(member string, score any) row.Record {
	text, there := score.([]byte)
	r := row.Record{Key: member, Inputs: make([]row.Raw, len(s.inputs)), Gone: !there}
	for i, input := range s.inputs {
		switch {
		case input == row.InputMember:
			r.Inputs[i] = row.Raw{Text: member, OK: true}
		case there:
			r.Inputs[i] = row.Raw{Text: scoreText(string(text)), OK: true}
		}
	}
	return r
}

// scoreText formats a score as the shortest decimal number that gives the same 64-bit float. It writes a whole number with all its digits.
// Versions of Redis format the same score in different ways: 0.10000000000000001, or 1.152921504606847e+18 for 2^60.
func scoreText(text string) string {
	score, err := strconv.ParseFloat(text, 64)
	size := math.Abs(score)
	switch {
	case err != nil || math.IsInf(score, 0) || math.IsNaN(score):
		return text
	case size < 1<<63 && score == math.Trunc(score):
		return strconv.FormatInt(int64(score), 10)
	case size < 1<<63 && size > 1e-6:
		return strconv.FormatFloat(score, 'f', -1, 64)
	}
	return strconv.FormatFloat(score, 'e', -1, 64)
}

var zsetSpec = Spec{
	Kind: spec.Named("zset"),
	idle: staging.Beside,
	inputs: func(o Options) (row.Inputs, error) {
		return row.Inputs{Names: []string{row.InputMember, row.InputScore}, Lacks: map[string]string{
			"$rank": "one ZADD changes the ranks of other members, which are not marked as changed. Make a view of the table, with " +
				"rank() OVER (ORDER BY score DESC)",
		}}, checkBoard(o.Key, o.Changed)
	},
	policy: onMissing,
	commands: func(_ Options, holds string) []string {
		return append(indexCommands(holds), "ZMSCORE R m")
	},
	open: func(s *redisconn.Store, key string, o Options, inputs []string) (flush.Source, error) {
		return NewZset(s, o.indexed(key, inputs))
	},
}
