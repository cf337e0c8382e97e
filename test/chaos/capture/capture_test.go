package capture

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"baton/internal/testsupport/cluster"
	"baton/internal/testsupport/nemesis"
)

const (
	// ordinary is how long an ordinary test run breaks things; CHAOS_TIME asks for more.
	ordinary = 60 * time.Second
	// each is what a fault takes on average.
	each = 2200 * time.Millisecond
	// flushing is the part of a run in which databases are emptied and exchanged. Each time all keys are read, which makes good what
	// was missed before; so it ends early, and the rest of the run shows what is missed.
	flushing = 3
	// settleWithin is how long the tables may differ from Redis when nothing is broken, and no writer runs: seconds, but not on a
	// machine on which leaders lose their leases because so much else runs.
	settleWithin = 10 * time.Minute
)

// Every change of Redis is in the table in the end, by whatever command it was made, and whatever was killed,
// frozen, cut, promoted, moved or held up.
func TestCapture(t *testing.T) {
	total, seed := plan(t)
	for _, to := range topologies {
		t.Run(to.name, func(t *testing.T) { breakCapture(t, to, total, seed) })
	}
}

func breakCapture(t *testing.T, to topology, total time.Duration, seed uint64) {
	fmt.Printf("chaos of capture, %s, for %v with CHAOS_SEED=%d\n", to.name, total, seed)
	l := newLab(t, to, seed)
	defer l.Keep(t, "capture-"+to.name, seed, l.logs)

	traffic, stop := context.WithCancel(t.Context())
	defer stop()
	var writing sync.WaitGroup
	for _, w := range l.writers {
		w.seldomUntil = time.Now().Add(total / flushing)
		writing.Go(func() { w.run(traffic) })
	}
	l.nemesis.Rest(2 * time.Second)
	l.nemesis.Rage(nemesis.Draw(seed, int(total/each), append(traits(), l.store.traits()...), pace()))
	l.background.Wait()
	l.ground(l.store.whole())
	l.nemesis.Rest(2 * lease)
	stop()
	writing.Wait()
	l.Add("nobody writes any more")
	l.settle()
	l.retire()
	l.report()
}

func plan(t *testing.T) (total time.Duration, seed uint64) {
	t.Helper()
	total = ordinary
	if text := os.Getenv("CHAOS_TIME"); text != "" {
		var err error
		if total, err = time.ParseDuration(text); err != nil || total < 10*time.Second {
			t.Fatalf("$CHAOS_TIME is %q: want a duration of at least 10s, such as 2m", text)
		}
	}
	return total, nemesis.Seed(t)
}

// settle waits until the tables are what Redis is, and stay it.
func (l *lab) settle() {
	began, equal := time.Now(), 0
	for equal < 2 {
		wrongs, rows, err := l.compare()
		switch {
		case err == nil && len(wrongs) == 0:
			equal++
			l.rows, l.settled = rows, time.Since(began)
		case time.Since(began) > settleWithin:
			l.Wrong("%v after the last write and without any fault: %v", settleWithin, err)
			for _, w := range wrongs {
				l.Wrong("%s", w)
			}
			return
		default:
			equal = 0
		}
		l.nemesis.Rest(500 * time.Millisecond)
	}
}

// retire ends the nodes in order, which they must obey.
func (l *lab) retire() {
	for _, n := range l.cluster.Nodes {
		if !n.Running() {
			continue
		}
		if code := n.Terminate(cluster.TermWithin); code != 0 {
			l.Wrong("%s was told to end and did with code %d", n.ID, code)
		}
	}
}

func (l *lab) logs() map[string]string {
	files := map[string]string{}
	for _, n := range l.cluster.Nodes {
		files[n.ID+".log"] = n.Log()
	}
	return files
}
