package source

import (
	"context"
	"errors"
	"slices"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/source/parts"
	"baton/internal/redisconn"
)

var (
	_ flush.Peeker = (*Counters)(nil)
	_ flush.Peeker = (*PlainCounters)(nil)
	_ flush.Peeker = (*Totals)(nil)
	_ flush.Peeker = (*indexed)(nil)
)

// Peek reads up to n counters, the staged ones first. It changes nothing.
func (s *Counters) Peek(ctx context.Context, n int) ([]row.Record, error) {
	c, err := s.Store.Conn(ctx, s.Live)
	if err != nil {
		return nil, err
	}
	defer c.Close() // returns it to the pool
	var records []row.Record
	for _, key := range []string{s.StageKey(), s.Live} {
		pairs, err := glimpse(ctx, c, key, n-len(records), "hash")
		if err != nil {
			return nil, s.Fail("look into", err)
		}
		records = append(records, s.records(pairs)...)
	}
	return records, nil
}

// records returns the records of some counters, in the same form as the records of a page.
func (s *Counters) records(pairs []parts.Pair) []row.Record {
	w := parts.NewWindow(0, parts.ByHash(1), s.budget)
	for _, p := range pairs {
		w.Add([]byte(p.Field), []byte(p.Value))
	}
	return recordsOf(w.Take(0), s.inputs, s.field)
}

// Peek reads up to n counters, the staged ones first. It changes nothing.
func (s *PlainCounters) Peek(ctx context.Context, n int) ([]row.Record, error) {
	c, err := s.Store.Conn(ctx, s.Live)
	if err != nil {
		return nil, err
	}
	defer c.Close() // returns it to the pool
	pairs, err := glimpse(ctx, c, s.StageKey(), n, "hash")
	if err != nil {
		return nil, s.Fail("look into", err)
	}
	records := s.records(pairs)
	for _, key := range []string{s.IndexKey(), s.Live} {
		ids, err := glimpse(ctx, c, key, n-len(records), "set", "zset")
		if err != nil {
			return nil, s.Fail("look into", err)
		}
		var counts []parts.Pair
		for _, id := range ids {
			count, err := redis.String(redis.DoContext(c, ctx, "GETRANGE", s.row.Key(id.Field), 0, longestTotal-1))
			if err != nil {
				return nil, s.Fail("look into the counters of", err)
			}
			if count != "" { // otherwise the count was moved to the stage meanwhile, or never existed
				counts = append(counts, parts.Pair{Field: id.Field, Value: count})
			}
		}
		records = append(records, s.records(counts)...)
	}
	return records, nil
}

// Peek reads up to n totals. It changes nothing.
func (s *Totals) Peek(ctx context.Context, n int) ([]row.Record, error) {
	look := *s
	look.pageRows = max(n, 1)
	var records []row.Record
	err := look.Read(ctx, flush.Stage{}, func(p flush.Page) error {
		records = append(records, p.Records[:min(n-len(records), len(p.Records))]...)
		if len(records) >= n {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	return records, nil
}

// glimpse reads up to n elements of a hash, a set or a zset: fields and values, members, or members and scores. For a missing key it
// returns none.
func glimpse(ctx context.Context, c redisconn.Conn, key string, n int, types ...string) ([]parts.Pair, error) {
	if n <= 0 {
		return nil, nil
	}
	kind, err := redis.String(redis.DoContext(c, ctx, "TYPE", key))
	if err != nil || kind == "none" {
		return nil, err
	}
	if !slices.Contains(types, kind) {
		return nil, redis.Error("WRONGTYPE it is a " + kind)
	}
	command := map[string]string{"hash": "HSCAN", "set": "SSCAN", "zset": "ZSCAN"}[kind]
	var pairs []parts.Pair
	half := false // whether a field was read, and its value is next
	enough := func() bool { return len(pairs) >= n }
	_, err = c.ScanKey(ctx, command, key, "0", redisconn.NewScanPace(), enough, func(text []byte) {
		switch {
		case half:
			pairs[len(pairs)-1].Value = string(text)
			half = false
		default:
			pairs = append(pairs, parts.Pair{Field: string(text)})
			half = kind != "set"
		}
	})
	if err != nil {
		return nil, err
	}
	return pairs[:min(n, len(pairs))], nil
}
