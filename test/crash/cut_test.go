package crash_test

import (
	"context"
	"testing"
	"time"

	"baton/internal/testsupport"
)

// fault is what befalls one of a node's connections.
type fault struct {
	name     string
	database bool
	strike   func(p *testsupport.Proxy)
}

func faults() []fault {
	cut := func(p *testsupport.Proxy) { p.Cut() }
	lose := func(p *testsupport.Proxy) { p.LoseReply("") } // of whatever is asked next
	return []fault{
		{"redis cut", false, cut}, {"redis reply lost", false, lose},
		{"database cut", true, cut}, {"database reply lost", true, lose},
	}
}

// A connection that breaks at any step, before the next request or between it and
// its reply, costs a run at most: the same leader goes on, and the result is exact.
func TestConnectionLostAtAnyStepIsFinishedExactly(t *testing.T) {
	everywhere(t, func(t *testing.T, l *lab) {
		scenes := l.matrix(t, every)
		for _, f := range faults() {
			if f.database && !l.hasServer() {
				continue // a file has no connection
			}
			failed := 0
			for _, s := range scenes {
				t.Run(f.name+"/"+s.String(), func(t *testing.T) {
					failed += l.cell(t, s.kind).disturbed(f, s.point)
				})
			}
			t.Logf("%s: %d times, which failed %d runs", f.name, len(scenes), failed)
		}
		l.nothingLeft(t)
	})
}

// disturbed flushes with a fault at p, writes more, and lets the same node finish.
func (c *cell) disturbed(f fault, p point) (failures int) {
	c.t.Helper()
	c.fill()
	redis, database := c.proxies()
	struck := false
	strike := newTally(p, func() error {
		struck = true
		if f.database {
			f.strike(database)
		} else {
			f.strike(redis)
		}
		return nil
	})
	n := c.leader("node", strike.observe, c.through(redis, database))
	ctx, cancel := context.WithTimeout(c.t.Context(), 20*time.Second)
	defer cancel()
	if err := n.flush(ctx); err != nil {
		failures++
	}
	c.traffic("second")
	more, err := n.persist(ctx)
	if err != nil {
		c.t.Fatalf("the node did not get over it: %v", err)
	}
	_ = n.close(ctx) // the lock's own connection may be broken still
	c.check()
	if !struck {
		c.t.Errorf("nothing came by %q", p)
	}
	return failures + more
}

// proxies stand before both servers; a file has none.
func (c *cell) proxies() (redis, database *testsupport.Proxy) {
	c.t.Helper()
	redis = c.proxy(c.redis.Addr())
	if c.hasServer() {
		database = c.proxy(c.db.Addr())
	}
	return redis, database
}

func (c *cell) proxy(target string) *testsupport.Proxy {
	c.t.Helper()
	return testsupport.NewProxy(c.t, target)
}

// through makes a node connect by way of proxies.
func (c *cell) through(redis, database *testsupport.Proxy) func(*spec) {
	return func(s *spec) {
		s.RedisURL = c.redis.URLThrough(redis)
		if database != nil {
			s.DSN = c.db.DSNThrough(database)
		}
	}
}

// What is between COMMIT and its reply is the one moment at which a client cannot
// know. The ledger does: the batch is tried again and not applied again.
func TestUnknownOutcomeOfCommitIsFoundInTheLedger(t *testing.T) {
	everywhere(t, func(t *testing.T, l *lab) {
		if !l.hasServer() {
			return // COMMIT of a file is a call, not a message
		}
		for _, reply := range []bool{true, false} {
			name, skipped := "request lost", int64(0)
			if reply {
				name, skipped = "reply lost", 1
			}
			t.Run(name, func(t *testing.T) {
				c := l.cell(t, counters)
				c.fill()
				redis, database := c.proxies()
				var sprung <-chan struct{}
				at := newTally(point{boundary{"sql", "after fence check"}, 2}, func() error {
					if reply {
						sprung = database.LoseReply("COMMIT")
					} else {
						sprung = database.LoseRequest("COMMIT")
					}
					return nil
				})
				n := c.leader("node", at.observe, c.through(redis, database))
				result, err := n.pipeline.Run(t.Context(), n.term)
				if err != nil {
					t.Fatal(err)
				}
				<-sprung
				if result.Skipped != skipped {
					t.Errorf("the ledger knew %d batches, want %d", result.Skipped, skipped)
				}
				c.close(n)
				c.check()
			})
		}
	})
}
