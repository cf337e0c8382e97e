package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
)

// longestTotal is how much is read of a key, in bytes. What is longer is no number, and
// may be of any size.
const longestTotal = 300

// readKeysOf reads the totals that have a key each on one server.
func (s *Totals) readKeysOf(ctx context.Context, node *server, yield func(flush.Page) error) error {
	c, err := node.borrow(ctx)
	if err != nil {
		return err
	}
	defer c.Close() // it goes back to the pool
	match := globEscape(s.row.Prefix) + "*" + globEscape(s.row.Suffix)
	for cursor, first := "0", true; first || cursor != "0"; first = false {
		if err := s.step(stepScan); err != nil {
			return err
		}
		ids := newTotalsPage()
		for again := true; again; again = cursor != "0" && !ids.full(s.pageRows) {
			if cursor, err = s.scanKeys(ctx, c, cursor, match, ids); err != nil {
				return s.fail("look for", err)
			}
		}
		if err := s.step(stepScanned); err != nil {
			return err
		}
		page := newTotalsPage()
		for some := range slices.Chunk(ids.pairs, pipelineDepth) {
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

// scanKeys adds the ids of the keys that one SCAN finds.
func (s *Totals) scanKeys(ctx context.Context, c redis.Conn, cursor, match string, ids *totalsPage) (next string, err error) {
	reply, err := redis.Values(redis.DoContext(c, ctx, "SCAN", cursor, "MATCH", match, "COUNT", scanCount, "TYPE", "string"))
	if err != nil {
		return "", err
	}
	var keys []string
	if _, err := redis.Scan(reply, &next, &keys); err != nil {
		return "", err
	}
	for _, key := range keys {
		id, ok := strings.CutPrefix(key, s.row.Prefix)
		if id, ok2 := strings.CutSuffix(id, s.row.Suffix); ok && ok2 {
			ids.set(id, "")
		}
	}
	return next, nil
}

// readKeys reads the totals of some ids. A key that is gone meanwhile, or on another
// node, is left out: the next pass will find it, wherever it is.
func (s *Totals) readKeys(ctx context.Context, c redis.Conn, ids []pair, page *totalsPage) error {
	if err := s.step(stepRows); err != nil {
		return err
	}
	for _, id := range ids {
		if err := c.Send("GETRANGE", s.row.Key(id.field), 0, longestTotal-1); err != nil {
			return s.fail("read", err)
		}
	}
	replies, err := receiveAll(ctx, c)
	if err != nil {
		return s.fail("read", err)
	}
	for i, reply := range replies {
		total, err := redis.String(reply, nil)
		var refusal redis.Error
		switch {
		case errors.As(err, &refusal) && (isElsewhere(refusal) || codeOf(refusal) == "WRONGTYPE"):
		case err != nil:
			return s.fail("read", err)
		case total != "":
			page.set(ids[i].field, total)
		}
	}
	return s.step(stepRowsRead)
}

// owning lists the masters of a Cluster that have slots, as it is now.
func (c *cluster) owning(ctx context.Context) ([]*server, error) {
	c.suspect()
	if err := c.refresh(ctx); err != nil {
		return nil, fmt.Errorf("no node of the redis cluster tells who serves what: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var masters []*server
	for slot, address := range c.owners {
		if address == "" {
			return nil, explain(redis.Error(fmt.Sprintf("CLUSTERDOWN no node serves slot %d", slot)))
		}
		if node := c.serverAt(address); !slices.Contains(masters, node) {
			masters = append(masters, node)
		}
	}
	return masters, nil
}

// globEscape makes a pattern that matches just the text.
func globEscape(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}
