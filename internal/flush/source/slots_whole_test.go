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
	"baton/internal/testsupport"
)

// A server that moves whole slots itself (Valkey 9) writes the keys into the stream of the new owner before the new owner has the slot, and
// removes all of them from the old owner at once. Other servers move each key by MIGRATE: see MoveSlot.
func TestACaptureIsExactWhileWholeSlotsMove(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"string", "zset"} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			c := filledClusterCapture(t, value)
			for round := range 3 {
				end := c.writing(40)
				moved := inBackground(func() error { return c.moveAway(fmt.Sprint("s:", 10+round)) })
				if round == 1 { // the next leader finds the slot while it moves
					c.die()
				}
				meanwhile(t, moved, c.goes)
				if round == 2 { // no process follows the stream while the slot moves back
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

// persist repeats a command until the key's node has executed it. A node that refuses it has not executed it.
func (g *clusterRig) persist(ctx context.Context, words []any) (err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		_, err = g.store.Run(ctx, words[1].(string), func(c redis.Conn) (any, error) {
			return redis.DoContext(c, ctx, words[0].(string), words[1:]...)
		})
		if _, refused := errors.AsType[redis.Error](err); !refused || ctx.Err() != nil {
			return err
		}
	}
}

// flushOut flushes until nothing is left.
func flushOut(ctx context.Context, db *database, src flush.Source) error {
	for {
		if more, err := db.flush(ctx, src, nil); err != nil || !more {
			return err
		}
	}
}

// meanwhile repeats do until a task in the background has succeeded.
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

// inBackground returns a channel for the error of a task.
func inBackground(do func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	return done
}
