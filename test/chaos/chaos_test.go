package chaos

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"baton/internal/testsupport/cluster"
	"baton/internal/testsupport/nemesis"
)

// ordinary is the time during which an ordinary test run has faults. CHAOS_TIME sets a longer time.
const ordinary = 15 * time.Second

// Nothing is lost and nothing doubled, whatever is killed, frozen, restarted or cut;
// and on the way no node leads beside another, no epoch comes twice, no slot is started
// twice, nobody dies by himself, and after every fault one node leads within a lease.
func TestChaos(t *testing.T) {
	total, seed, strict := plan(t)
	fmt.Printf("chaos for %v with CHAOS_SEED=%d\n", total, seed)
	of := traits
	if pooled() {
		of = slices.Concat(poolerTraits, of)
	}
	if clustered() {
		of = slices.Concat(clusterTraits, of)
	}
	schedule := draw(of, seed, total)
	l := newLab(t, seed)
	defer l.Keep(t, "chaos", seed, l.logs)

	traffic, stop := context.WithCancel(t.Context())
	defer stop()
	var writing sync.WaitGroup
	for _, w := range l.writers {
		writing.Go(func() {
			if err := w.run(traffic); err != nil {
				l.Wrong("%v", err)
			}
		})
	}
	time.Sleep(time.Second)
	l.rage(schedule)
	calm := time.Now()
	l.settle(quiet)
	stop()
	writing.Wait()
	l.Add("traffic has stopped")
	l.drain()
	l.retire()
	l.judge(strict, calm.Add(quiet))
	l.audit()
}

func plan(t *testing.T) (total time.Duration, seed uint64, strict bool) {
	t.Helper()
	total = ordinary
	if text := os.Getenv("CHAOS_TIME"); text != "" {
		var err error
		strict = true
		if total, err = time.ParseDuration(text); err != nil || total < 5*time.Second {
			t.Fatalf("$CHAOS_TIME is %q: want a duration of at least 5s, such as 2m", text)
		}
	}
	return total, nemesis.Seed(t), strict
}

// settle supervises the nodes for the time d, without faults.
func (l *lab) settle(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); time.Sleep(2 * time.Millisecond) {
		l.keeper.Tick()
	}
}

// drain waits until all written data has left Redis.
func (l *lab) drain() {
	l.t.Helper()
	const patience = 60 * time.Second
	began := time.Now()
	for {
		left, err := l.history.pending()
		if err == nil && len(left) == 0 && (l.exact() || time.Since(began) > patience) {
			l.drained = time.Since(began)
			return
		}
		if time.Since(began) > patience {
			l.Wrong("after %v without any fault Redis still holds what is to be flushed: %v (%v)", patience, left, err)
			return
		}
		l.settle(200 * time.Millisecond)
	}
}

// exact reports whether the tables have their final content. It is needed because Redis does not show what a job with a stream, with
// totals or with a scan still has to flush.
func (l *lab) exact() bool {
	v, err := audit(l.t.Context(), l.db, l.want())
	return err == nil && len(v.findings) == 0
}

// want returns the state that the writers have written. The writers must have ended.
func (l *lab) want() *state {
	want := newState()
	for _, w := range l.writers {
		want.add(w.state)
	}
	return want
}

// retire ends the nodes in order. The nodes must obey.
func (l *lab) retire() {
	for _, n := range l.cluster.Nodes {
		if !n.Running() {
			continue
		}
		l.probes.at(n.ID, "")
		if code := n.Terminate(cluster.TermWithin); code != 0 {
			l.Wrong("%s was told to end and did with code %d", n.ID, code)
		}
	}
	if left, err := l.history.pending(); err != nil || len(left) > 0 {
		l.Wrong("what was flushed came back: %v (%v)", left, err)
	}
	if err := l.history.follow(); err != nil {
		l.Wrong("the history cannot be read: %v", err)
	}
}

// audit compares the database with the written state.
func (l *lab) audit() {
	l.t.Helper()
	want := l.want()
	v, err := audit(l.t.Context(), l.db, want)
	if err != nil {
		l.t.Fatalf("audit: %v", err)
	}
	l.report(want, v)
	if v.lost > 0 || v.double > 0 || len(v.findings) > 0 {
		l.t.Errorf("%d lost, %d duplicated:\n%s", v.lost, v.double, v.explain(l.t.Context(), l.db))
	}
}

// judge checks the records against the promises.
func (l *lab) judge(strict bool, end time.Time) {
	events, runs := l.history.result()
	answers, _ := l.probes.result()
	takeovers, err := l.db.Query(l.t.Context(), "SELECT job, epoch, node_id FROM chaos_fence ORDER BY n")
	if err != nil {
		l.Wrong("the takeovers cannot be read: %v", err)
	}
	for _, e := range events {
		l.At(e.at, "%s %s epoch %d %s", e.node, e.name, e.epoch, e.reason)
	}
	l.recoveries = recoveries(l.strikes, l.keeper.Units, answers, runs, end)
	slack := 250 * time.Millisecond // for two busy cores
	if !strict {
		slack += lease // other tests use the same cores
	}
	for _, wrongs := range [][]string{
		overlaps(answers, events), rising(events), fenced(takeovers, events), once(runs), late(l.recoveries, slack),
	} {
		for _, w := range wrongs[:min(10, len(wrongs))] {
			l.Wrong("%s", w)
		}
		if len(wrongs) > 10 {
			l.Wrong("and %d more of this sort", len(wrongs)-10)
		}
	}
	for _, n := range l.cluster.Nodes {
		if _, log, found := strings.Cut(n.Log(), "panic"); found {
			l.Wrong("%s has panicked: panic%s", n.ID, log[:min(len(log), 3000)])
		}
	}
}

// logs returns the logs of the nodes.
func (l *lab) logs() map[string]string {
	files := map[string]string{}
	for _, n := range l.cluster.Nodes {
		files[n.ID+".log"] = n.Log()
	}
	return files
}
