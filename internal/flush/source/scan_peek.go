package source

import (
	"context"
	"errors"
	"fmt"
	"math"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/source/idlist"
	"baton/internal/redisconn"
)

// peekCalls is the maximum number of calls of SCAN, so that Peek does not read all keys of a large database if few keys match the pattern.
const peekCalls = 1000

// Peek reads up to n records and changes nothing. It looks at a million keys at most.
func (s *Scan) Peek(ctx context.Context, n int) ([]row.Record, error) {
	look, err := s.witness(ctx)
	if err != nil {
		return nil, s.fail("find the masters of the keys of", err)
	}
	p := peek{want: n, calls: peekCalls}
	rows := newScanRows(s, 0, p.take)
	for _, node := range look.nodes {
		if err = s.peekNode(ctx, node, rows, &p); err != nil {
			break
		}
	}
	if errors.Is(err, errEnough) {
		return p.records, nil
	}
	for i := 0; i < len(look.nodes) && len(p.records) == 0 && err == nil; i++ {
		err = s.otherType(ctx, look.nodes[i])
	}
	return p.records, err
}

// otherType returns an error if a key of the pattern at a server has another type than the job reads.
func (s *Scan) otherType(ctx context.Context, node *redisconn.Server) error {
	key, holds, err := node.AnyKey(ctx, redisconn.Glob(s.pattern.Literals()...), s.Matches)
	if err != nil || key == "" || holds == scanTypes[s.value] {
		return s.fail("scan", err)
	}
	return fmt.Errorf("no key of %q is a %s, but for example %s is a %s: the job skips such keys; set `value` to their type: hash, "+
		"string, json (an object in a string), set or zset", s.Name(), scanTypes[s.value], row.Quote(key), holds)
}

// peek collects the records for one call of Peek.
type peek struct {
	want, calls int
	records     []row.Record
}

var errEnough = errors.New("enough records")

func (p *peek) take(page flush.Page) error {
	p.records = append(p.records, page.Records...)
	if len(p.records) >= p.want {
		p.records = p.records[:p.want]
		return errEnough
	}
	return nil
}

func (s *Scan) peekNode(ctx context.Context, node *redisconn.Server, rows *scanRows, p *peek) error {
	c, err := node.Borrow(ctx)
	if err != nil {
		return err
	}
	defer c.Close() // returns it to the pool
	keys := s.keys()
	keys.calls = &p.calls
	for first := true; first || keys.Cursor != "0"; first = false {
		if p.calls == 0 {
			return errEnough
		}
		pile := &idlist.List{}
		if err := keys.next(ctx, c, pile, 1, math.MaxInt); err != nil {
			return s.fail("scan", err)
		}
		pile.Sort()
		for lane, ids := range pile.Pages(p.want, s.lanes) {
			if err := rows.read(ctx, c, lane, ids[:min(len(ids), p.want-len(p.records))]); err != nil {
				return err
			}
			if err := rows.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}
