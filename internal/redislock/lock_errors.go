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

const epochRemedy = "invalid epoch: not a number, or more than 30 days above redis' clock and every known epoch. It was forged, " +
	"or a clock is wrong: see baton fence list, clear it with baton fence reset"

// explain is [redisconn.Explain] in errors that the elector knows.
func explain(err error) error {
	if errors.Is(err, elector.ErrRefused) {
		return err // explained before
	}
	return forElector(redisconn.Explain(err))
}

// forElector translates an explained error: one that matches [redisconn.ErrRefused] also matches
// [elector.ErrRefused], and one with epochCode matches [elector.ErrEpoch].
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

// refused is an error of the transport that also matches [elector.ErrRefused].
type refused struct{ error }

func (r refused) Unwrap() []error { return []error{r.error, elector.ErrRefused} }

// explainWrongType names the key of the election that has the wrong type; Redis' own message
// does not.
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
