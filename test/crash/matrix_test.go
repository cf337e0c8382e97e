package crash_test

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"baton/internal/flush"
	"baton/internal/redisstore"
	"baton/internal/sqlstore"
)

// boundary is a step of one layer.
type boundary struct {
	Layer string // flush, redis or sql
	Step  string
}

func (b boundary) String() string { return b.Layer + ": " + b.Step }

// boundaries are all there are.
func boundaries() []boundary {
	var all []boundary
	for _, s := range flush.Steps() {
		all = append(all, boundary{"flush", string(s)})
	}
	for _, s := range redisstore.Steps() {
		all = append(all, boundary{"redis", s})
	}
	for _, s := range sqlstore.Steps() {
		all = append(all, boundary{"sql", string(s)})
	}
	return all
}

// never says why a source does not come by a boundary; "" if it does.
func never(k kind, b boundary) string {
	switch b.Layer {
	case "redis":
		if !slices.Contains(redisstore.StepsOf(k.source()), b.Step) {
			return "it is another source's"
		}
	case "flush":
		steps := flush.Steps()
		at := slices.Index(steps, flush.Step(b.Step))
		if slices.Index(steps, flush.StepBeforeSweep) <= at && at <= slices.Index(steps, flush.StepSwept) {
			return only(k == scan, "only a scan finds out what has vanished")
		}
	case "sql":
		return neverInDatabase(k, sqlstore.Step(b.Step))
	}
	return ""
}

func neverInDatabase(k kind, s sqlstore.Step) string {
	switch s {
	case sqlstore.StepAfterLedger:
		return only(k != stream, "the position does what the ledger does for others")
	case sqlstore.StepAfterMove:
		return only(k == stream, "its place is not in the database")
	case sqlstore.StepAfterMarks:
		return only(k == watermark, "it has no totals")
	}
	return ""
}

// only is why unless ok.
func only(ok bool, why string) string {
	if ok {
		return ""
	}
	return why
}

// point is one passing of a boundary: the nth, from 1.
type point struct {
	boundary
	Nth int
}

func (p point) String() string { return fmt.Sprintf("%s #%d", p.boundary, p.Nth) }

// tally counts passings, and acts at one of them.
type tally struct {
	at  point
	act func() error

	mu   sync.Mutex
	seen map[boundary]int
}

func newTally(at point, act func() error) *tally {
	return &tally{at: at, act: act, seen: map[boundary]int{}}
}

func (c *tally) observe(b boundary) error {
	c.mu.Lock()
	c.seen[b]++
	hit := c.at == point{b, c.seen[b]}
	c.mu.Unlock() // the reader must be able to go on while the writer is held up
	if hit {
		return c.act()
	}
	return nil
}

func (c *tally) times(b boundary) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[b]
}

// scene is a point of one source's flush.
type scene struct {
	kind
	point
}

func (s scene) String() string { return string(s.kind) + "/" + s.point.String() }

// matrix is every point of every source that pick leaves. It says how many.
func (l *lab) matrix(t *testing.T, pick func([]point) []point) []scene {
	t.Helper()
	var all []scene
	for i, k := range kinds() {
		passed := l.points(t, k)
		picked := l.share(i, pick(passed))
		t.Logf("matrix: %s come by %d of %d steps, %d times in a flush, of which %d are tried",
			k, len(middles(passed)), len(boundaries()), len(passed), len(picked))
		for _, p := range picked {
			all = append(all, scene{k, p})
		}
	}
	return all
}

// everything says to try all there is, as `make crash` has it.
func everything() bool { return os.Getenv("CRASH") == "all" }

// passings picks every passing of every boundary, if everything is tried; otherwise one
// of each.
func passings(points []point) []point {
	if everything() {
		return points
	}
	return middles(points)
}

// share is what this database tries of the points of a kind of source, the ith. Where not
// everything is tried the databases take turns: each source comes by all of its steps,
// each database has all sources, and each step of several sources meets all databases;
// but not every source meets every database at every step.
func (l *lab) share(i int, points []point) []point {
	if everything() {
		return points
	}
	all := boundaries()
	turns := []string{"postgres", "mysql", "sqlite"}
	var mine []point
	for _, p := range points {
		turn := (slices.Index(all, p.boundary) + i) % len(turns)
		if turns[turn] == l.db.Driver || p.Layer == "sql" && lonely(sqlstore.Step(p.Step)) {
			mine = append(mine, p)
		}
	}
	return mine
}

// lonely are steps in the database that a single kind of source comes by.
func lonely(s sqlstore.Step) bool { return s == sqlstore.StepAfterMove || s == sqlstore.StepAfterMarks }

// middles picks of each boundary the passing that is in the middle of a stage, if
// it is passed more than once.
func middles(points []point) []point {
	var out []point
	for _, p := range points {
		last := len(out) - 1
		switch {
		case last < 0 || out[last].boundary != p.boundary:
			out = append(out, p)
		case p.Nth == 2:
			out[last] = p
		}
	}
	return out
}

// points are the passings of an undisturbed flush, which must itself be exact.
// Every boundary is among them, or never says why not.
func (l *lab) points(t *testing.T, k kind) []point {
	t.Helper()
	c := l.cell(t, k)
	c.fill()
	passed := newTally(point{}, nil)
	n := c.leader("undisturbed", l.open(t, c.spec("undisturbed"), passed.observe), passed.observe)
	if err := n.flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.release(n)
	c.check()
	var all []point
	for _, b := range boundaries() {
		n := passed.times(b)
		switch why := never(k, b); {
		case n == 0 && why == "":
			t.Errorf("no %s come by %q: the proof has a hole there", k, b)
		case n > 0 && why != "":
			t.Errorf("%s come by %q, although they should not: %s", k, b, why)
		}
		for nth := range n {
			all = append(all, point{b, nth + 1})
		}
	}
	for b := range passed.seen {
		if !slices.Contains(boundaries(), b) {
			t.Errorf("step %q is in no list of steps", b)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return all
}
