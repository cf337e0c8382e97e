package staging

import (
	"context"
	"errors"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
)

// Beside returns the live key and the keys of its stage. While none exists, no change is pending or staged and there is nothing to clean
// up: Stage would find nothing and write nothing.
func Beside(live string) []string {
	k := Key{Live: live}
	return []string{live, k.StageKey(), k.MetaKey()}
}

// BesideIndex is Beside for counters with a key each.
func BesideIndex(live string) []string { return append(Beside(live), Key{Live: live}.IndexKey()) }

// question asks whether any of some keys exists. In a Cluster they share a slot.
type question struct {
	of   int // the index of the job
	keys []any

	found int64
	err   error
}

// Idle reports for the keys of each job whether all of them are missing. It sends one command for each job, and in a Cluster for each
// slot, all at once. false: a key exists, or that is unknown.
func Idle(ctx context.Context, s *redisconn.Store, keys [][]string) []bool {
	asked := questions(s, keys)
	idle := make([]bool, len(keys))
	if askAll(ctx, s, asked) != nil {
		return idle
	}
	for i := range keys {
		idle[i] = len(keys[i]) > 0
	}
	for _, q := range asked {
		idle[q.of] = idle[q.of] && q.err == nil && q.found == 0
	}
	return idle
}

// AnyExists reports whether any of some keys exists. It is true while a Cluster moves them: a run
// finds them.
func AnyExists(ctx context.Context, s *redisconn.Store, keys []string) (bool, error) {
	asked := questions(s, [][]string{keys})
	err := askAll(ctx, s, asked)
	for _, q := range asked {
		if q.found > 0 || redisconn.IsElsewhere(q.err) {
			return true, nil
		}
		err = errors.Join(err, q.err)
	}
	return false, redisconn.Explain(err)
}

func questions(s *redisconn.Store, keys [][]string) (asked []*question) {
	for i, some := range keys {
		bySlot := map[int]*question{}
		for _, key := range some {
			slot := 0
			if s.IsCluster() {
				slot = redisconn.Slot(key)
			}
			if bySlot[slot] == nil {
				bySlot[slot] = &question{of: i}
				asked = append(asked, bySlot[slot])
			}
			bySlot[slot].keys = append(bySlot[slot].keys, key)
		}
	}
	return asked
}

func askAll(ctx context.Context, s *redisconn.Store, asked []*question) error {
	first := func(q *question) string { return q.keys[0].(string) }
	return redisconn.ByMaster(ctx, s, nil, asked, first, func(ctx context.Context, c redisconn.Conn, some []*question) error {
		for _, q := range some {
			if err := c.Send("EXISTS", q.keys...); err != nil {
				return err
			}
		}
		replies, err := redisconn.ReceiveAll(ctx, c)
		if err != nil {
			return err
		}
		for i, q := range some {
			q.found, q.err = redis.Int64(replies[i], nil)
		}
		return nil
	})
}
