package source

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/redisconn"
	"baton/internal/testsupport"
)

// Servers that move a whole slot by themselves (Valkey 9) write its keys into the stream of the new owner before that has the
// slot, and remove them from the old owner at once. Other servers move each key by MIGRATE. See MoveSlot.
func TestACaptureIsExactWhileWholeSlotsMove(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"string", "zset"} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			c := filledClusterCapture(t, value)
			for round := range 3 {
				end := c.writing(40)
				moved := inBackground(func() error { return c.moveAway(fmt.Sprint("s:", 10+round)) })
				if round == 1 { // the next leader finds it on its way
					c.die()
				}
				meanwhile(t, moved, c.goes)
				if round == 2 { // nobody follows as it moves back
					c.die()
					if err := c.moveAway(fmt.Sprint("s:", 10+round)); err != nil {
						t.Fatal(err)
					}
				}
				end()
				c.settles()
			}
		})
	}
}

// Rows, their index, counters and stages move while they are flushed.
func TestFlushesOfAClusterAreExactWhileWholeSlotsMove(t *testing.T) {
	t.Parallel()
	g := newClusterRig(t)
	// With a long time-out no command is sent twice.
	g.store = openAt(t, redisconn.Options{Cluster: g.cluster.Addresses(), ClientName: "baton-test", Timeout: time.Minute})
	const users, articles = 20, 30
	rows, sums, failures := map[string]string{}, map[string]int64{}, 0
	hashes, counters := hashesOn(t, g.store, IndexedOptions{PageRows: 5}), countersOn(t, g.store, CountersOptions{PartRows: 5})
	ofHashes, ofCounters := newDatabase(), newDatabase()
	for round, key := range []string{"changed:user", "views:3", "user:7", "changed:user", "views:3"} {
		ctx, stop := context.WithCancel(t.Context())
		written := inBackground(func() error {
			for n := 1; ctx.Err() == nil; n++ {
				id, article := fmt.Sprint(rand.IntN(users)), fmt.Sprint(rand.IntN(articles))
				row := fmt.Sprint(1000_000*round + n)
				for _, words := range [][]any{
					{"HSET", "user:" + id, "name", "x", "n", row}, {"SADD", "changed:user", id}, {"HINCRBY", "views:3", article, n},
				} {
					if err := g.persist(t.Context(), words); err != nil {
						return err
					}
				}
				rows[id] = fmt.Sprintf("%s|x|%s", id, row)
				sums[article] += int64(n)
			}
			return nil
		})
		moved := inBackground(func() error { return g.moveAway(key) })
		meanwhile(t, moved, func() {
			for _, err := range []error{flushOut(t.Context(), ofHashes, hashes), flushOut(t.Context(), ofCounters, counters)} {
				if err != nil {
					failures++
				}
			}
		})
		stop()
		if err := <-written; err != nil {
			t.Fatal(err)
		}
		testsupport.AwaitNoError(t, "a flush after the move", func() error { return flushOut(t.Context(), ofHashes, hashes) })
		testsupport.AwaitNoError(t, "a flush after the move", func() error { return flushOut(t.Context(), ofCounters, counters) })
		same(t, fmt.Sprintf("rows after the move of %s", key), maps.Clone(rows), ofHashes.rows())
		same(t, fmt.Sprintf("sums after the move of %s", key), maps.Clone(sums), ofCounters.counts())
	}
	t.Logf("%d flushes failed meanwhile", failures)
}

// persist runs a command until the node that has its key has carried it out: one that refuses it has not.
func (g *clusterRig) persist(ctx context.Context, words []any) (err error) {
	for range 10_000 {
		_, err = g.store.Run(ctx, words[1].(string), func(c redis.Conn) (any, error) {
			return redis.DoContext(c, ctx, words[0].(string), words[1:]...)
		})
		if _, refused := errors.AsType[redis.Error](err); !refused {
			return err
		}
	}
	return err
}

// flushOut flushes until nothing is left.
func flushOut(ctx context.Context, db *database, src flush.Source) error {
	for {
		if more, err := db.flush(ctx, src, nil); err != nil || !more {
			return err
		}
	}
}

// meanwhile does something again and again until a task in the background has ended well.
func meanwhile(t *testing.T, task <-chan error, do func()) {
	t.Helper()
	for {
		do()
		select {
		case err := <-task:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}

// inBackground gives the error of a task, once it has ended.
func inBackground(do func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	return done
}
