package crash_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"baton/internal/flush"
)

// A leader freezes at any step. It wakes after another leader has taken over and finished, and more changes are staged. The test checks
// that the old leader commits nothing more, removes nothing, and is ordered to step down.
func TestLeaderDeposedAtAnyStepChangesNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, l *lab) {
		scenes := l.scenes(t, deposed, outsideTransactions, false)
		// No successor gets the lock of a database file, see below.
		scenes = append(scenes, l.scenes(t, deposed, insideTransactions, true)...)
		var cells waiting
		for _, s := range scenes {
			cells.run(t, s.String(), func(t *testing.T) { l.cell(t, s.kind).deposed(s.point) })
		}
		cells.wait()
		l.nothingLeft(t)
	})
}

// A leader freezes inside its transaction. It wakes while the transaction is still alive, and its successor has taken the fence or waits
// for the fence. If the fence is taken, the transaction must not commit. With a database in a file the successor cannot take the fence
// before the transaction ends.
func TestLeaderThatWakesInsideItsTransactionDoesNotCommit(t *testing.T) {
	everywhere(t, func(t *testing.T, l *lab) {
		var cells waiting
		for _, s := range l.matrix(t, often, insideTransactions) {
			cells.run(t, s.String(), func(t *testing.T) { l.cell(t, s.kind).overtaken(s.point) })
		}
		cells.wait()
		l.nothingLeft(t)
	})
}

func insideTransactions(points []point) []point { return only(middles(points), inTransaction) }

func outsideTransactions(points []point) []point {
	return only(middles(points), func(p point) bool { return !inTransaction(p) })
}

// inTransaction reports whether a transaction is open at a step.
func inTransaction(p point) bool {
	switch p.boundary {
	case boundary{"sql", "before begin"}, boundary{"sql", "after commit"}, boundary{"sql", "take over: after commit"}:
		return false
	}
	return p.Layer == "sql"
}

// holdsFence reports whether the transaction at a step prevents others from taking the fence.
func holdsFence(p point) bool {
	return p.boundary == boundary{"sql", "after fence check"} || p.boundary == boundary{"sql", "take over: before commit"}
}

// frozen is a leader that has stopped at a point.
type frozen struct {
	node *node
	wake func()
	end  chan error
}

// freeze starts a leader, and returns when the leader has reached p. The number of pages of a capture depends on the arrival of its
// changes. So freeze writes more until the leader reaches p.
func (c *cell) freeze(p point, lease time.Duration) *frozen {
	c.t.Helper()
	reached, gate := make(chan struct{}), make(chan struct{})
	at := newTally(p, func() error {
		close(reached)
		<-gate
		return nil
	})
	f := &frozen{
		node: c.leader("old", c.observed(lease, at), at.observe),
		wake: sync.OnceFunc(func() { close(gate) }),
		end:  make(chan error, 1),
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	var running sync.WaitGroup
	persist := func() {
		running.Go(func() {
			_, err := f.node.persist(ctx)
			f.end <- err
		})
	}
	c.t.Cleanup(func() { // the leader's connections are closed after that
		f.wake()
		cancel()
		running.Wait()
	})
	for persist(); ; persist() {
		select {
		case <-reached:
			return f
		case err := <-f.end:
			if err != nil {
				c.t.Fatalf("the leader ended before it came to %q: %v", p, err)
			}
			c.traffic("again")
		}
	}
}

// deposed lets a successor finish before the leader wakes at p.
func (c *cell) deposed(p point) {
	c.t.Helper()
	c.fill()
	// The server must end a transaction whose client is frozen: after a quarter of
	// the lease, or a second.
	old := c.freeze(p, 2*time.Second)
	c.traffic("second")
	c.expire()
	successor := c.leader("successor", c.stores, ignore)
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	if _, err := successor.persist(ctx); err != nil {
		c.t.Fatalf("the successor could not finish: %v", err)
	}
	c.release(successor)

	// This makes a stage of a later term, which the old leader must not change.
	c.traffic("third")
	staged := newTally(point{boundary{"flush", "staged"}, 1}, func() error { return errStop })
	third := c.leader("third", c.stores, staged.observe)
	if err := third.flush(ctx); !errors.Is(err, errStop) {
		c.t.Fatalf("the third leader was to stop after staging: %v", err)
	}
	c.release(third)

	old.wake()
	err := <-old.end
	if err == nil && (c.kind.looks() || c.kind.follows()) {
		err = old.node.flush(ctx) // the leader had nothing left to write, and did not know of more changes
	}
	if !fenced(err) {
		c.t.Errorf("the deposed leader was not told to step down: %v", err)
	}
	c.release(old.node)
	c.fresh()
	c.check()
}

// overtaken wakes a leader inside its transaction, as soon as the leader's successor has the fence or waits for the fence. The successor
// writes nothing before the old leader has ended, so that only the fence can stop the old leader.
func (c *cell) overtaken(p point) {
	c.t.Helper()
	c.fill()
	old := c.freeze(p, time.Minute) // the end of the lease must not end the transaction
	c.traffic("second")
	c.expire()
	taken, goOn := make(chan struct{}), make(chan struct{})
	hold := newTally(point{boundary{"flush", "taken-over"}, 1}, func() error {
		close(taken)
		<-goOn
		return nil
	})
	successor := c.leader("successor", c.stores, hold.observe)
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	finished := make(chan error, 1)
	go func() {
		_, err := successor.persist(ctx)
		finished <- err
	}()
	overtakes, watch := c.hasServer() && !holdsFence(p), patience
	if overtakes {
		watch = 30 * time.Second
	}
	overtook := false
	select {
	case <-taken:
		overtook = true
	case <-time.After(watch):
	}
	if overtook != overtakes {
		c.t.Errorf("the successor has the fence: %v, want %v", overtook, overtakes)
	}
	old.wake()
	if err := <-old.end; overtook && !fenced(err) || err != nil && !fenced(err) {
		c.t.Errorf("the overtaken leader was not told to step down: %v", err)
	}
	close(goOn)
	if err := <-finished; err != nil {
		c.t.Errorf("the successor could not finish: %v", err)
	}
	c.release(successor)
	c.release(old.node)
	c.fresh()
	c.check()
}

// patience is the time for which a successor is watched that must wait.
const patience = 300 * time.Millisecond

var errStop = errors.New("stopped here")

func fenced(err error) bool { return errors.Is(err, flush.ErrFenced) }
