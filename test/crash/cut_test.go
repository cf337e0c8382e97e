package crash_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"baton/internal/testsupport"
)

// fault is a fault of one of a node's connections.
type fault struct {
	name     string
	database bool
	// strike begins the fault. The returned channel is closed when the fault has lost something.
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

// A connection breaks at any step, before the next request or between the request and its reply. The test checks that this costs at most
// one run, and that the same leader continues with an exact result.
//
// If not all combinations are tried, the second fault of a connection hits the flush that continues after the first fault, if that flush
// reaches the step as often.
func TestConnectionLostAtAnyStepIsFinishedExactly(t *testing.T) {
	everywhere(t, func(t *testing.T, l *lab) {
		w := l.wire(t)
		for _, pair := range slices.Collect(slices.Chunk(faults(), 2)) {
			flushes, failed := 0, 0
			disturbed := func(t *testing.T, s scene, faults ...fault) (struck int) {
				t.Run(faults[0].name+"/"+s.String(), func(t *testing.T) {
					var more int
					struck, more = l.cell(t, s.kind).disturbed(w, s.point, faults...)
					flushes, failed = flushes+1, failed+more
				})
				return struck
			}
			for _, s := range l.scenes(t, cut, middles, pair[0].database) { // a database in a file has no connection
				if everything() || disturbed(t, s, pair...) < len(pair) {
					for i := range pair {
						if everything() || i > 0 {
							disturbed(t, s, pair[i])
						}
					}
				}
			}
			t.Logf("%s, %s: in %d cells, where %d runs failed", pair[0].name, pair[1].name, flushes, failed)
		}
		l.nothingLeft(t)
	})
}

// wire contains a process' connections to both servers. The test can break the connections.
type wire struct {
	*stores
	redis, database *testsupport.Proxy    // a database in a file has none
	now             atomic.Pointer[tally] // receives the steps in the database and the commands to Redis, from any goroutine
}

func (l *lab) wire(t *testing.T) *wire {
	t.Helper()
	s := l.spec("wire")
	w := &wire{redis: l.data.Proxy()}
	s.RedisURL = l.data.URLThrough(w.redis)
	if l.data == l.redis {
		s.LockURL = s.RedisURL
	}
	if l.hasServer() {
		w.database = l.db.Proxy()
		s.DSN = l.db.DSNThrough(w.database)
	}
	w.stores = l.open(t, s, w.observe)
	return w
}

func (w *wire) observe(b boundary) error { return w.now.Load().observe(b) }

// strike is a fault that hits a flush when the flush reaches a point.
type strike struct {
	mu   sync.Mutex
	lost <-chan struct{} // nil until the flush reaches the point
}

func (s *strike) struck() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// strike makes a fault hit the next flush that reaches p.
func (w *wire) strike(p point, f fault) *strike {
	s := &strike{}
	w.now.Store(newTally(p, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if f.database {
			s.lost = f.strike(w.database)
		} else {
			s.lost = f.strike(w.redis)
		}
		return nil
	}))
	return s
}

// disturbed flushes with a fault at p, writes more, and lets the same node finish, with the next fault at p if there is one. It returns
// how many of the faults happened.
func (c *cell) disturbed(w *wire, p point, faults ...fault) (struck, failures int) {
	c.t.Helper()
	c.fill()
	now := w.strike(p, faults[0])
	n := c.leader("node", w.stores, w.observe)
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	for now.struck() == nil { // the number of pages of a capture depends on the arrival of its changes
		if ctx.Err() != nil {
			c.t.Fatalf("the flush never came to %q", p)
		}
		if err := n.flush(ctx); err != nil {
			failures++
		}
		if now.struck() == nil {
			c.traffic("again")
		}
	}
	strikes := []*strike{now}
	for _, f := range faults[1:] {
		now = w.strike(p, f)
		failures += c.more(ctx, n)
		if now.struck() == nil {
			break // the flush did not reach p as often
		}
		strikes = append(strikes, now)
	}
	w.now.Store(newTally(point{}, nil))
	last := strikes[len(strikes)-1]
	if len(strikes) == 1 || !hasHappened(last.struck()) { // nothing was sent over the connection since then
		failures += c.more(ctx, n)
	}
	_ = n.release(ctx) // the lock's own connection may be broken
	c.check()
	for _, s := range strikes {
		happened(c.t, s.struck())
	}
	return len(strikes), failures
}

// more writes more, and lets a node finish.
func (c *cell) more(ctx context.Context, n *node) (failures int) {
	c.t.Helper()
	c.traffic("more")
	failures, err := n.persist(ctx)
	if err != nil {
		c.t.Fatalf("the node did not get over it: %v", err)
	}
	return failures
}

// Between COMMIT and its reply a client cannot know whether the transaction was committed. The ledger or the position shows this. The
// test checks that the batch is tried again and not applied again. States are written again, which changes nothing.
func TestUnknownOutcomeOfCommitIsFoundOut(t *testing.T) {
	everywhere(t, func(t *testing.T, l *lab) {
		if !l.hasServer() {
			return // the COMMIT of a database in a file is a call, not a message
		}
		w := l.wire(t)
		checked := func(points []point) []point {
			return only(middles(points), func(p point) bool { return p.boundary == boundary{"sql", "after fence check"} })
		}
		for _, s := range l.scenes(t, often, checked, true) {
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
	w.now.Store(at)
	n := c.leader("node", w.stores, ignore)
	result, err := n.pipeline.Run(c.t.Context(), n.term)
	if err != nil {
		c.t.Fatal(err)
	}
	happened(c.t, sprung)
	skipped, most := int64(0), int64(1)
	if reply && !c.kind.states() {
		skipped = 1
	}
	if reply && c.kind == plain {
		most = 2 // all connections are cut, and the other lane may also be in its COMMIT
	}
	least := skipped
	if c.lab.name == inPool {
		// The lost reply may be the reply to an earlier statement of the same round trip. A server executes the COMMIT that was sent to
		// it, but PgBouncer drops the COMMIT together with the client's connection.
		least = 0
	}
	// If the request is lost, nothing is applied. But on a busy machine the repetition may also be cut off after its COMMIT, and is then
	// found in the ledger. So the test relies on the rows.
	if result.Skipped != skipped && (result.Skipped < least || result.Skipped > most) {
		c.t.Errorf("%d batches were found to be applied, want %d", result.Skipped, skipped)
	}
	c.release(n)
	c.check()
}

// happened fails the test if the fault did not happen.
func happened(t *testing.T, struck <-chan struct{}) {
	t.Helper()
	if !hasHappened(struck) {
		t.Error("nothing was lost on the connection")
	}
}

func hasHappened(struck <-chan struct{}) bool {
	select {
	case <-struck:
		return true
	default:
		return false
	}
}
