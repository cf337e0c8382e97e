package redislock

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gomodule/redigo/redis"

	"baton/internal/elector"
	"baton/internal/redisconn"
	"baton/internal/redislock/script"
)

// epochCode is the scripts' error code for an invalid epoch.
const epochCode = "EPOCH"

const epochRemedy = "invalid epoch: not a number, or more than 30 days above redis' clock and every known epoch. The epoch was written " +
	"by hand, or a clock is wrong: see baton fence list, and repair the epoch with baton fence reset"

// explain works like [redisconn.Explain], but its result matches the errors of package elector.
func explain(err error) error {
	if errors.Is(err, elector.ErrRefused) {
		return err // explained before
	}
	return forElector(redisconn.Explain(err))
}

// forElector translates an explained error for the elector. If the error matches [redisconn.ErrRefused], the result also matches
// [elector.ErrRefused]. If the error has the code epochCode, the result matches [elector.ErrEpoch].
func forElector(err error) error {
	var reply redis.Error
	switch {
	case err == nil, errors.Is(err, elector.ErrRefused):
		return err
	case errors.As(err, &reply) && redisconn.Code(reply) == epochCode:
		return fmt.Errorf("%s (%w: %w)", epochRemedy, elector.ErrEpoch, reply)
	case errors.Is(err, redisconn.ErrRefused):
		return refused{err}
	}
	return err
}

// refused is an error of Redis that also matches [elector.ErrRefused].
type refused struct{ error }

func (r refused) Unwrap() []error { return []error{r.error, elector.ErrRefused} }

// explainWrongType adds the name of the key that has the wrong type, because Redis' message does not contain it.
func explainWrongType(ctx context.Context, s *redisconn.Store, k script.Keys, err error) error {
	if !strings.Contains(err.Error(), "WRONGTYPE") {
		return err
	}
	conn, dialErr := s.Conn(ctx, k.Lock())
	if dialErr != nil {
		return err // the first error matters more
	}
	defer conn.Close() // it goes back to the pool
	for _, key := range []struct{ name, kind string }{
		{k.Lock(), "string"}, {k.Term(), "hash"}, {k.Nodes(), "hash"}, {k.Control(), "hash"},
	} {
		kind, askErr := redis.String(redis.DoContext(conn, ctx, "TYPE", key.name))
		if askErr != nil {
			return err
		}
		if kind != "none" && kind != key.kind {
			return fmt.Errorf("key %q is a %s and should be a %s: %w", key.name, kind, key.kind, err)
		}
	}
	return err
}
