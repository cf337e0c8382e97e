package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"baton/internal/flush/source/idlist"
	"baton/internal/redisconn"

	"github.com/gomodule/redigo/redis"
)

// keyScan is one pass over the keys of one server, in batches.
type keyScan struct {
	scan    *Scan
	cursor  string
	pace    *redisconn.Pace
	untyped bool // the server does not know TYPE: it is older than Redis 6
	calls   *int // how many more there may be; nil: as many as it takes
	split   []string
}

// next scans until the budget is used up, there are that many keys, or the pass is over
// (cursor "0"), and returns what it found, sorted and without duplicates.
func (k *keyScan) next(ctx context.Context, c redisconn.Conn, budget, most int) (*idlist.List, error) {
	ids := &idlist.List{}
	for !ids.Full(budget) && ids.Len() < most && (k.calls == nil || *k.calls > 0) {
		if k.calls != nil {
			*k.calls--
		}
		elements, err := k.once(ctx, c)
		if err != nil {
			return nil, err
		}
		for _, e := range elements {
			key, ok := e.([]byte)
			if !ok {
				return nil, fmt.Errorf("SCAN replied with a %T for a key", e)
			}
			if k.split, ok = k.scan.pattern.Match(string(key), k.split[:0]); !ok {
				continue
			}
			if len(k.split) == 1 { // so that numbers are sorted as numbers
				key = []byte(k.split[0])
			}
			ids.Add(key)
		}
		if k.cursor == "0" {
			break
		}
	}
	ids.Sort()
	return ids, nil
}

// once asks for the next few keys.
func (k *keyScan) once(ctx context.Context, c redisconn.Conn) ([]any, error) {
	args := []any{k.cursor, "MATCH", k.scan.pattern.Glob(), "COUNT", k.pace.Depth()}
	if !k.untyped {
		args = append(args, "TYPE", scanTypes[k.scan.value])
	}
	began := time.Now()
	reply, err := redis.Values(redis.DoContext(c, ctx, "SCAN", args...))
	k.pace.Learn(redisconn.Paced{Took: time.Since(began)})
	var refusal redis.Error
	if errors.As(err, &refusal) && refusal == "ERR syntax error" && !k.untyped {
		k.untyped = true // keys of other types are told when they are read
		return k.once(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	var elements []any
	_, err = redis.Scan(reply, &k.cursor, &elements)
	return elements, err
}
