package source

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/flush/source/paging"
	"baton/internal/flush/source/parts"
	"baton/internal/redisconn"
)

// longestTotal is the maximum number of bytes that are read of a value. A longer value is no number, and may have any size.
const longestTotal = 300

// readKeysOf reads the totals of one server, in the case that each total has its own key.
func (s *Totals) readKeysOf(ctx context.Context, node *redisconn.Server, yield func(flush.Page) error) error {
	c, err := node.Borrow(ctx)
	if err != nil {
		return err
	}
	defer c.Close() // returns it to the pool
	scan := redisconn.KeyScan{
		Cursor: "0", Match: redisconn.Glob(s.row.Prefix, s.row.Suffix), Type: "string", Pace: redisconn.NewNamePace(),
	}
	for first := true; first || scan.Cursor != "0"; first = false {
		ids := newTotalsPage()
		for again := true; again; again = scan.Cursor != "0" && !ids.full(s.pageRows) {
			if err := scan.Next(ctx, c, func(key string) { s.add(key, ids) }); err != nil {
				return s.fail("look for", err)
			}
		}
		page := newTotalsPage()
		for some := range slices.Chunk(ids.pairs, paging.Depth) {
			if err := s.readKeys(ctx, c, some, page); err != nil {
				return err
			}
		}
		if err := s.yield(page, yield); err != nil {
			return err
		}
	}
	return nil
}

// add adds the id of a key, if the key matches the pattern.
func (s *Totals) add(key string, ids *totalsPage) {
	id, ok := strings.CutPrefix(key, s.row.Prefix)
	if id, ok2 := strings.CutSuffix(id, s.row.Suffix); ok && ok2 {
		ids.set(strings.Clone(id), "")
	}
}

// readKeys reads the totals of some ids. It skips a key that was removed, holds another type, or has moved to another node. The next pass
// finds a moved key.
func (s *Totals) readKeys(ctx context.Context, c redisconn.Conn, ids []parts.Pair, page *totalsPage) error {
	for _, id := range ids {
		if err := c.Send("GETRANGE", s.row.Key(id.Field), 0, longestTotal-1); err != nil {
			return s.fail("read", err)
		}
	}
	replies, err := redisconn.ReceiveAll(ctx, c)
	if err != nil {
		return s.fail("read", err)
	}
	for i, reply := range replies {
		total, err := redis.String(reply, nil)
		var refusal redis.Error
		switch {
		case errors.As(err, &refusal) && (redisconn.IsElsewhere(refusal) || redisconn.Code(refusal) == "WRONGTYPE"):
		case err != nil:
			return s.fail("read", err)
		case total != "":
			page.set(ids[i].Field, total)
		}
	}
	return nil
}
