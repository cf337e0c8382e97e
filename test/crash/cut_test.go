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
	// strike's channel is closed once something is lost.
	strike func(p *testsupport.Proxy) <-chan struct{}
}

func faults() []fault {
	done := make(chan struct{})
	close(done)
	cut := func(p *testsupport.Proxy) <-chan struct{} { p.Cut(); return done }
	lose := func(p *testsupport.Proxy) <-chan struct{} { return p.LoseNextReply() }
	return []fault{
		{"redis cut", false, cut}, {"redis reply lost", false, lose},
		{"database cut", true, cut}, {"database reply lost", true, lose},
	}
}

// A connection that breaks at any step, before the next request or between it and
// its reply, costs a run at most: the same leader goes on, and the result is exact.
func TestConnectionLostAtAnyStepIsFinishedExactly(t *testing.T) {
	everywhere(t, func(t *testing.T, l *lab) {
		passed := l.passed(t)
		w := l.wire(t)
		for _, f := range faults() {
			failed := 0
			scenes := l.scenes(t, passed, middles, f.database) // a file has no connection
			for _, s := range scenes {
				t.Run(f.name+"/"+s.String(), func(t *testing.T) {
					failed += l.cell(t, s.kind).disturbed(w, f, s.point)
				})
			}
			t.Logf("%s: %d times, which failed %d runs", f.name, len(scenes), failed)
		}
		l.nothingLeft(t)
	})
}

// wire is a process' connections to both servers, which can be broken.
type wire struct {
	*stores
	redis, database *testsupport.Proxy   // a file has none
	sql             func(boundary) error // hears of the steps in the database
}

func (l *lab) wire(t *testing.T) *wire {
	t.Helper()
	s := l.spec("wire")
	w := &wire{redis: l.redis.Proxy()}
	s.RedisURL = l.redis.URLThrough(w.redis)
	if l.hasServer() {
		w.database = l.db.Proxy()
		s.DSN = l.db.DSNThrough(w.database)
	}
	w.stores = l.open(t, s, func(b boundary) error { return w.sql(b) })
	return w
}

// disturbed flushes with a fault at p, writes more, and lets the same node finish.
func (c *cell) disturbed(w *wire, f fault, p point) (failures int) {
	c.t.Helper()
	c.fill()
	var struck <-chan struct{} // blocks for ever until the flush comes by p
	strike := newTally(p, func() error {
		if f.database {
			struck = f.strike(w.database)
		} else {
			struck = f.strike(w.redis)
		}
		return nil
	})
	w.sql = strike.observe
	n := c.leader("node", w.stores, strike.observe)
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
	_ = n.release(ctx) // the lock's own connection may be broken
	c.check()
	happened(c.t, struck)
	return failures + more
}

// What is between COMMIT and its reply is the one moment at which a client cannot
// know. The ledger does, or the position: the batch is tried again and not applied
// again. States are written again, which changes nothing.
func TestUnknownOutcomeOfCommitIsFoundOut(t *testing.T) {
	everywhere(t, func(t *testing.T, l *lab) {
		if !l.hasServer() {
			return // COMMIT of a file is a call, not a message
		}
		w := l.wire(t)
		checked := func(points []point) []point {
			return only(middles(points), func(p point) bool { return p.boundary == boundary{"sql", "after fence check"} })
		}
		for _, s := range l.scenes(t, l.passed(t), checked, true) {
			for _, reply := range []bool{true, false} {
				name := "request lost"
				if reply {
					name = "reply lost"
				}
				t.Run(s.String()+"/"+name, func(t *testing.T) { l.cell(t, s.kind).uncertain(w, s.point, reply) })
			}
		}
		l.nothingLeft(t)
	})
}

// uncertain flushes while a COMMIT, or its reply, is lost.
func (c *cell) uncertain(w *wire, p point, reply bool) {
	c.t.Helper()
	c.fill()
	var sprung <-chan struct{}
	at := newTally(p, func() error {
		if reply {
			sprung = w.database.LoseReply("COMMIT")
		} else {
			sprung = w.database.LoseRequest("COMMIT")
		}
		return nil
	})
	w.sql = at.observe
	n := c.leader("node", w.stores, ignore)
	result, err := n.pipeline.Run(c.t.Context(), n.term)
	if err != nil {
		c.t.Fatal(err)
	}
	happened(c.t, sprung)
	skipped, most := int64(0), int64(1)
	if reply && c.kind != hashes && c.kind != scan {
		skipped = 1
	}
	if reply && c.kind == plain {
		most = 2 // all connections are cut, and the other lane may be in its COMMIT, too
	}
	// Of a lost request nothing is applied; but on a busy machine the repetition may itself
	// be cut off after its COMMIT, and is then found. The rows are what counts.
	if result.Skipped != skipped && (result.Skipped < skipped || result.Skipped > most) {
		c.t.Errorf("%d batches were found to be applied, want %d", result.Skipped, skipped)
	}
	c.release(n)
	c.check()
}

// happened fails a test whose fault found nothing to strike.
func happened(t *testing.T, struck <-chan struct{}) {
	t.Helper()
	select {
	case <-struck:
	default:
		t.Error("nothing was lost on the connection")
	}
}
