package staging

import (
	"context"
	"errors"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
)

// Beside returns the live key and the keys of its stage. While all of these keys are missing, no change is pending or staged, and nothing
// has to be cleaned up. So the method Stage would find nothing and write nothing.
func Beside(live string) []string {
	k := Key{Live: live}
	return []string{live, k.StageKey(), k.MetaKey()}
}

// BesideIndex works like Beside, but also returns the key of the index. It is for counters that each have their own key.
func BesideIndex(live string) []string { return append(Beside(live), Key{Live: live}.IndexKey()) }

// question asks whether at least one of its keys exists. In a Cluster, all keys of a question are in the same slot.
type question struct {
	of   int // the index of the job
	keys []any

	found int64
	err   error
}

// Idle reports for each job whether all of its keys are missing. It sends one command for each job, or in a Cluster one command for each
// slot of a job. All commands are sent in one round trip. If Idle cannot find out whether the keys of a job are missing, it reports false
// for that job.
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

// AnyExists reports whether at least one of the keys exists. While a Cluster moves the keys to another node, AnyExists returns true,
// because a run can find keys that are being moved.
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
