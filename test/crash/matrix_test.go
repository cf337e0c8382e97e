package crash_test

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"baton/internal/flush/flushtest"
	"baton/internal/flush/source"
	"baton/internal/flush/sql/sqltest"
	"baton/internal/testsupport"
)

// boundary is a step of one layer.
type boundary struct {
	Layer string // flush, redis or sql
	Step  string
}

func (b boundary) String() string { return b.Layer + ": " + b.Step }

// boundaries returns all boundaries.
func boundaries() []boundary {
	var all []boundary
	for _, s := range flushtest.Steps() {
		all = append(all, boundary{"flush", string(s)})
	}
	for _, k := range kinds() {
		for _, s := range k.inRedis() {
			if b := (boundary{"redis", s}); !slices.Contains(all, b) {
				all = append(all, b)
			}
		}
	}
	for _, s := range sqltest.Steps() {
		all = append(all, boundary{"sql", string(s)})
	}
	return all
}

// never returns the reason why a source does not reach a boundary. It returns "" if the source reaches the boundary.
func never(k kind, b boundary) string {
	switch b.Layer {
	case "redis":
		if !slices.Contains(k.inRedis(), b.Step) {
			return "it is another source's"
		}
	case "flush":
		return neverInFlush(k, flushtest.Step(b.Step))
	case "sql":
		return neverInDatabase(k, sqltest.Step(b.Step))
	}
	return ""
}

func neverInFlush(k kind, s flushtest.Step) string {
	switch s {
	case flushtest.StepBeforeTurn, flushtest.StepInTurn:
		return unless(k == list || k == stream || k.follows(), "its pages have no order")
	case flushtest.StepPositionRead:
		return unless(k == stream || k.follows(), "its place is not in the database")
	case flushtest.StepRowsFound:
		return unless(k == members, "only of changed keys with members it searches for rows")
	case flushtest.StepBeforeMarks, flushtest.StepMarksRead:
		return unless(k.totals(), "it has no totals")
	case flushtest.StepBeforeDone, flushtest.StepDone, flushtest.StepBeforeDiscard, flushtest.StepDiscarded:
		return unless(!k.totals(), "totals have nothing to remove")
	case flushtest.StepCounted, flushtest.StepStaleCounted:
		return unless(k == scan, "only a scan counts by the numbers of its passes")
	case flushtest.StepBeforeSweep, flushtest.StepStaleRead, flushtest.StepRechecked, flushtest.StepSwept:
		return unless(k == scan || k == capture, "only a scan or a capture finds out what has vanished")
	}
	return ""
}

func neverInDatabase(k kind, s sqltest.Step) string {
	switch s {
	case sqltest.StepAfterLedger:
		return unless(k != stream && k != members, "the position does what the ledger does for others")
	case sqltest.StepAfterMove:
		return unless(k == stream || k.follows(), "its place is not in the database")
	case sqltest.StepAfterMarks:
		return unless(k.totals(), "it has no totals")
	}
	return ""
}

// unless returns why, or "" if ok is true.
func unless(ok bool, why string) string {
	if ok {
		return ""
	}
	return why
}

// The test checks that every kind of source has its rows in the matrix.
func TestEveryKindOfSourceIsTried(t *testing.T) {
	for _, s := range source.Sources() {
		if !slices.Contains(kinds(), kind(s.Name)) {
			t.Errorf("%s are not tried", s.Name)
		}
	}
}

// point is the nth passing of a boundary, counted from 1.
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
	c.mu.Unlock() // the reader must be able to continue while the writer is stopped
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

// trial is what a test does to a flush at a step.
type trial int

const (
	killed trial = iota
	cut
	deposed
	written
	trials
	// often is a trial that is made at each step where it is possible.
	often trial = -1
)

// matrix returns every point of every source that pick selects. It logs their number.
func (l *lab) matrix(t *testing.T, of trial, pick func([]point) []point) []scene {
	t.Helper()
	return l.scenes(t, of, pick, false)
}

// undisturbed stores the results of passed for each kind of database.
var undisturbed = struct {
	sync.Mutex
	passed map[string]map[kind][]point
}{passed: map[string]map[kind][]point{}}

// passed returns the points that an undisturbed flush of each kind reaches. The first test that calls passed makes these flushes.
func (l *lab) passed(t *testing.T) map[kind][]point {
	t.Helper()
	undisturbed.Lock()
	defer undisturbed.Unlock()
	if all, ok := undisturbed.passed[l.name]; ok {
		return all
	}
	all := map[kind][]point{}
	var now *tally
	st := l.open(t, l.spec("undisturbed"), func(b boundary) error { return now.observe(b) })
	for _, k := range kinds() {
		for i := range 3 {
			now = newTally(point{}, nil)
			points := l.points(t, k, st, now)
			if i > 0 { // the number of times that a capture reaches a step depends on the arrival of its changes
				points = slices.DeleteFunc(points, func(p point) bool { return !slices.Contains(all[k], p) })
			}
			if all[k] = points; !k.follows() {
				break
			}
		}
	}
	undisturbed.passed[l.name] = all
	return all
}

// scenes returns the points that pick selects and that this database must try. servers means that a database in a file cannot try them,
// so that only servers take turns.
func (l *lab) scenes(t *testing.T, of trial, pick func([]point) []point, servers bool) []scene {
	t.Helper()
	passed := l.passed(t)
	var all []scene
	for i, k := range kinds() {
		picked := l.share(of, i, pick(passed[k]), servers)
		t.Logf("matrix: %s come by %d of %d steps, %d times in a flush, of which %d are tried",
			k, len(middles(passed[k])), len(boundaries()), len(passed[k]), len(picked))
		for _, p := range picked {
			all = append(all, scene{k, p})
		}
	}
	return all
}

// everything reports whether the test must try all combinations, as in `make crash`.
func everything() bool { return os.Getenv("CRASH") == "all" }

// passings selects every passing of every boundary if everything is tried, otherwise one passing of each boundary.
func passings(points []point) []point {
	if everything() {
		return points
	}
	return middles(points)
}

// share returns the points of the ith kind of source that a trial tries in this database. If not everything is tried, the trials and the
// databases take turns. Each source is tried at all of its steps. Each database tries all sources. Each step that all sources reach is
// tried with all trials and all databases. But not every source is tried with every trial and database at every step.
func (l *lab) share(of trial, i int, points []point, servers bool) []point {
	if servers && !l.hasServer() {
		return nil
	}
	if everything() {
		return points
	}
	all := boundaries()
	var mine []point
	for _, p := range points {
		at := slices.Index(all, p.boundary)
		if of != often && trial(at+i)%trials != of {
			continue
		}
		turns := turnsAt(p, servers)
		turn := (at + i) % len(turns)
		if turns[turn] == l.name || p.Layer == "sql" && lonely(sqltest.Step(p.Step)) {
			mine = append(mine, p)
		}
	}
	return mine
}

// turnsAt returns the databases that take turns at a point. PostgreSQL tries a third of the steps in the database, because each database
// has its own way there. It tries fewer of the other steps, because it makes a process for each connection. A pooler matters only for
// steps in the database. servers leaves SQLite out.
func turnsAt(p point, servers bool) []string {
	const pg, pool, maria, lite = inPostgres, inPool, inMariaDB, inSQLite
	switch {
	case p.Layer == "sql" && servers:
		return []string{pg, maria, pool, maria, maria}
	case p.Layer == "sql":
		return []string{pg, maria, pool, lite, lite}
	case servers:
		return []string{pg, maria, maria, maria, maria, maria, maria} // as many as there are sources
	}
	return []string{pg, lite, maria, lite, lite, maria, lite}
}

// lonely reports whether only a single kind of source reaches a step in the database.
func lonely(s sqltest.Step) bool { return s == sqltest.StepAfterMove || s == sqltest.StepAfterMarks }

func only(points []point, which func(point) bool) []point {
	return slices.DeleteFunc(slices.Clone(points), func(p point) bool { return !which(p) })
}

// middles selects for each boundary the passing in the middle of a stage, if there are several passings.
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

// points returns the passings of an undisturbed flush, which must also be exact. For every boundary that is not among them, never must
// return a reason.
func (l *lab) points(t *testing.T, k kind, st *stores, passed *tally) []point {
	t.Helper()
	c := l.cell(t, k)
	c.fill()
	n := c.leader("undisturbed", st, passed.observe)
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
			t.Errorf("step %q is in no list of steps, and %s come by", b, k)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return all
}

// The test checks that each source is tried at each of its steps in some database, even if not everything is tried, and that each step
// that all sources reach is tried with all databases and all trials.
func TestTrialsAndDatabasesTakeTurnsAtEveryStepOfEverySource(t *testing.T) {
	if everything() {
		return // the databases do not take turns
	}
	for _, b := range boundaries() {
		common, in, met := true, map[string]bool{}, map[trial]bool{}
		for i, k := range kinds() {
			if never(k, b) != "" {
				common = false
				continue
			}
			tried := 0
			for of := range trials {
				for _, d := range takers(of, i, b, false) {
					tried++
					in[d], met[of] = true, true
				}
			}
			if tried == 0 {
				t.Errorf("%s: nothing is tried at %s", b, k)
			}
			if len(takers(often, i, b, true)) == 0 {
				t.Errorf("%s: no server tries %s", b, k)
			}
		}
		want := 3
		if b.Layer == "sql" {
			want = 4 // with the pooler
		}
		if common && (len(in) != want || len(met) != int(trials)) {
			t.Errorf("%s is tried in %d kinds of databases, want %d, and in %d ways, want %d", b, len(in), want, len(met), trials)
		}
	}
}

// takers returns the databases in which a trial is made at a step of the ith kind of source.
func takers(of trial, i int, b boundary, servers bool) (names []string) {
	for _, d := range databases() {
		l := &lab{name: d.name, db: &testsupport.Database{}}
		if len(l.share(of, i, []point{{b, 1}}, servers)) > 0 {
			names = append(names, d.name)
		}
	}
	return names
}
