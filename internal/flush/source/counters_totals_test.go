package source

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"baton/internal/flush"
	"baton/internal/flush/flushtest"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
	"baton/internal/flush/source/staging"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/open"
	"baton/internal/redisconn"
	"baton/internal/testsupport"
)

func totalsOn(t testing.TB, store *redisconn.Store, o TotalsOptions) *Totals {
	t.Helper()
	preset(&o.Job, "totals")
	preset(&o.Key, "totals")
	if o.Inputs == nil {
		o.Inputs = []string{"$field", "$value"}
		if strings.Contains(o.Key, "<") {
			o.Inputs[0] = "page"
		}
	}
	return made(t, NewTotals, store, o)
}

// totalsOf reads all totals. If a counter comes twice, the last total counts.
func totalsOf(t testing.TB, src flush.Source) (got map[string]string, pages int) {
	t.Helper()
	st, ok, err := src.Stage(t.Context(), "a", "")
	if err != nil {
		t.Fatal(err)
	}
	got = map[string]string{}
	if !ok {
		return got, 0
	}
	for _, p := range readAll(t, src, st) {
		pages++
		seen := map[string]bool{}
		for _, r := range p.Records {
			if seen[r.Key] || r.Inputs[0].Text != r.Key || p.Part >= 0 {
				t.Errorf("record %+v of part %d, seen %v", r, p.Part, seen[r.Key])
			}
			seen[r.Key] = true
			got[r.Key] = r.Inputs[1].Text
		}
	}
	return got, pages
}

func TestTotalsOfAHashAreReadAndStay(t *testing.T) {
	g := newRig(t)
	src := totalsOn(t, g.store, TotalsOptions{PageRows: 1000})
	if got, _ := totalsOf(t, src); len(got) != 0 {
		t.Errorf("of nothing it read %v", got)
	}
	want := map[string]string{}
	for field, n := range g.fillCounters("totals", 5000) {
		want[field] = fmt.Sprint(n)
	}
	written := func() string {
		_, after, _ := strings.Cut(g.Str("INFO", "persistence"), "rdb_changes_since_last_save:")
		return strings.Fields(after)[0]
	}
	before := written()
	got, pages := totalsOf(t, src)
	same(t, "totals", want, got)
	if pages < 3 || pages > 5 {
		t.Errorf("%d pages of 1000 or more", pages)
	}
	st := stageNow(t, src, "b")
	if st.Size != 5000 {
		t.Errorf("stage %+v", st)
	}
	if after := written(); after != before {
		t.Errorf("Redis was written to: %s changes, then %s", before, after)
	}
	if _, counted := flush.Source(src).(flush.Counted); counted {
		t.Error("totals are counted, although none waits in Redis")
	}
}

// If a job staged increments and then was changed to totals, its stage would stay in Redis for ever.
func TestTotalsOfAHashWithAStageAreNotBegun(t *testing.T) {
	g := newRig(t)
	g.fillCounters("totals", 10)
	before := g.counters(CountersOptions{Key: "totals", Job: "totals"})
	st := stageNow(t, before, "a")
	g.fillCounters("totals", 5)
	src := totalsOn(t, g.store, TotalsOptions{})
	if _, _, err := src.Stage(t.Context(), "b", ""); !errors.Is(err, staging.ErrBrokenStage) ||
		!strings.Contains(err.Error(), "`mode: stage`") {
		t.Errorf("staged over a stage: %v", err)
	}
	if err := before.Discard(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	if got, _ := totalsOf(t, src); len(got) != 5 {
		t.Errorf("read %d totals", len(got))
	}
	g.Do("ACL", "SETUSER", "default", "resetkeys", "~totals")
	if got, _ := totalsOf(t, src); len(got) != 5 {
		t.Errorf("who may not look for a stage read %d totals", len(got))
	}
}

func TestTotalsWithAKeyEachAreRead(t *testing.T) {
	g := newRig(t)
	want := map[string]string{}
	for i := range 3000 {
		want[fmt.Sprintf("p*%d", i)] = fmt.Sprint(i)
		g.Send("SET", fmt.Sprintf("h\\?ts:p*%d:n", i), i)
	}
	g.Do("")
	g.Do("SET", "h\\?ts::n", 7) // its id is the empty text
	want[""] = "7"
	g.Do("SET", "h?ts:p1:n", 1)       // the pattern is no glob
	g.Do("SET", "h\\?ts:n", 1)        // too short for prefix and suffix
	g.Do("RPUSH", "h\\?ts:list:n", 1) // no counter
	g.Do("SET", "h\\?ts:long:n", strings.Repeat("x", 1<<20))
	want["long"] = strings.Repeat("x", longestTotal)
	src := totalsOn(t, g.store, TotalsOptions{Key: "h\\?ts:<page>:n", PageRows: 1000})
	got, pages := totalsOf(t, src)
	same(t, "totals", want, got)
	if pages < 2 {
		t.Errorf("%d pages", pages)
	}
}

func TestTotalsAreCheckedWhenTheyAreMade(t *testing.T) {
	g := newRig(t)
	for want, o := range map[string]TotalsOptions{
		"name of its job": {Key: "k"},
		"empty":           {Job: "j"},
		"no input":        {Job: "j", Key: "k", Inputs: []string{"page"}},
		`use page`:        {Job: "j", Key: "k:<page>", Inputs: []string{"$field"}},
		"once":            {Job: "j", Key: "k:<page>:<page>"},
	} {
		if _, err := NewTotals(g.store, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v does not say %q", o, err, want)
		}
	}
	g.Do("RPUSH", "totals", "x")
	if _, _, err := totalsOn(t, g.store, TotalsOptions{}).Stage(t.Context(), "a", ""); !errors.Is(err, staging.ErrWrongType) ||
		!strings.Contains(err.Error(), `"totals" is not a hash`) {
		t.Errorf("stage of a list: %v", err)
	}
}

func TestTotalsOfAClusterAreReadFromEveryMaster(t *testing.T) {
	t.Parallel()
	g := newClusterRig(t)
	want := map[string]string{}
	for i := range 200 {
		g.do("SET", fmt.Sprintf("hits:%d", i), i)
		want[fmt.Sprint(i)] = fmt.Sprint(i)
	}
	got, _ := totalsOf(t, totalsOn(t, g.store, TotalsOptions{Key: "hits:<page>"}))
	same(t, "totals", want, got)
	g.do("HSET", "totals", "a", 5)
	got, _ = totalsOf(t, totalsOn(t, g.store, TotalsOptions{}))
	same(t, "totals of a hash", map[string]string{"a": "5"}, got)

	// A key that is moving to another node is left to the next pass, or read there.
	moving := g.begin("hits:7")
	got, _ = totalsOf(t, totalsOn(t, g.store, TotalsOptions{Key: "hits:<page>"}))
	if err := moving.MoveKeys("hits:7"); err != nil {
		t.Fatal(err)
	}
	moved, _ := totalsOf(t, totalsOn(t, g.store, TotalsOptions{Key: "hits:<page>"}))
	for id, n := range want {
		if id != "7" && (got[id] != n || moved[id] != n) {
			t.Errorf("total of %s is %q, and then %q", id, got[id], moved[id])
		}
	}
	if err := moving.Finish(); err != nil {
		t.Fatal(err)
	}
}

// totalsTable is a table to which totals are flushed, in any database.
type totalsTable struct {
	t      testing.TB
	sink   flush.Sink
	counts func() map[string]int64 // its contents without zeros
	epochs atomic.Int64
}

// newTotalsFile returns a table in a SQLite file.
func newTotalsFile(t testing.TB) *totalsTable {
	t.Helper()
	file := testsupport.SQLite(t)
	file.Exec(t, "CREATE TABLE counts (name TEXT PRIMARY KEY, n INTEGER)")
	sink, err := open.Database(file.Driver, sql.Options{Name: "main", DSN: file.DSN})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sink.Close() })
	return &totalsTable{t: t, sink: sink, counts: func() map[string]int64 {
		counts := map[string]int64{}
		for _, row := range file.Rows(t, "SELECT name, n FROM counts WHERE n <> 0") {
			n, err := strconv.ParseInt(row[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			counts[row[0]] = n
		}
		return counts
	}}
}

// newTotalsMemory returns a table without a disk: a thousand random schedules would wait for a real disk all the time.
func newTotalsMemory(t testing.TB) *totalsTable {
	db := newDatabase()
	db.SetTable(sumsTable())
	return &totalsTable{t: t, sink: db, counts: func() map[string]int64 {
		counts := db.counts()
		maps.DeleteFunc(counts, func(_ string, n int64) bool { return n == 0 })
		return counts
	}}
}

// job returns a new process of the job, with its own leadership.
func (d *totalsTable) job(store *redisconn.Store, o TotalsOptions, change func(*flush.Config)) func() error {
	o.Job = "totals"
	name := "page"
	if !strings.Contains(o.Key, "<") {
		name = row.InputField
	}
	cfg := flush.Config{
		Job: o.Job, NodeID: "n", Sink: d.sink, Policy: flush.Policy{BatchRows: 50, OnDecrease: flush.DecreaseSubtract},
		NewID: func() (string, error) { return fmt.Sprint("id-", d.epochs.Add(1)), nil },
		OnBatch: func(b flush.BatchStats) {
			if !b.Applied {
				d.t.Error("a batch came twice")
			}
		},
		Mapping: mapping.Spec{Table: "counts", Key: []string{"name"}, Columns: map[string]mapping.ColumnSpec{
			"name": {From: name}, "n": {From: row.InputValue},
		}},
		Inputs: row.Inputs{Names: []string{name, row.InputValue}, Guarantee: row.ByMark},
		NewSources: func(inputs []string) ([]flush.Source, error) {
			o.Inputs = inputs
			s, err := NewTotals(store, o)
			return []flush.Source{s}, err
		},
	}
	if change != nil {
		change(&cfg)
	}
	p, err := flush.New(cfg)
	if err != nil {
		d.t.Fatal(err)
	}
	lead := leader{d.epochs.Add(1)}
	return func() error {
		_, err := p.Run(context.Background(), lead)
		return err
	}
}

// In random schedules of producers, passes, crashes, resets and decreases, the table equals Redis after an undisturbed pass.
func TestTotalsAreExactUnderAnySchedule(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	for _, key := range []string{"totals", "hits:<page>"} {
		t.Run(key, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				g.Do("FLUSHALL")
				d := newTotalsMemory(t)
				want := map[string]int64{}
				run := func(n int) {
					crash, _ := crashAt(n, nil)
					observe := locked(crash)
					o := TotalsOptions{Key: key, PageRows: rapid.IntRange(1, 60).Draw(r, "rows of a page")}
					err := d.job(watched(g.store, observe), o, func(c *flush.Config) {
						c.BatchRows = rapid.IntRange(1, 20).Draw(r, "rows of a batch")
						c.Lanes = rapid.IntRange(1, 2).Draw(r, "lanes")
						*c = flushtest.Observed(*c, func(s flushtest.Step) error { return observe(string(s)) })
					})()
					if err != nil && !errors.Is(err, errCrash) {
						r.Fatal(err)
					}
				}
				r.Repeat(map[string]func(*rapid.T){
					"produce": func(r *rapid.T) {
						for range rapid.IntRange(1, 40).Draw(r, "increments") {
							page, n := fmt.Sprint(rapid.IntRange(0, 80).Draw(r, "page")), rapid.Int64Range(-3, 9).Draw(r, "n")
							if want[page] += n; key == "totals" {
								g.Send("HINCRBY", key, page, n)
							} else {
								g.Send("INCRBY", "hits:"+page, n)
							}
						}
						g.Do("")
					},
					"crash": func(r *rapid.T) { run(rapid.IntRange(1, 40).Draw(r, "step")) },
					"flush": func(*rapid.T) { run(1 << 30) },
				})
				run(1 << 30)
				maps.DeleteFunc(want, func(_ string, n int64) bool { return n == 0 })
				same(t, "counts", want, d.counts())
			})
		})
	}
}

// If a failover loses acknowledged increments, they are subtracted from the table: it always equals Redis.
func TestTotalsAreWhatRedisHasAfterAFailoverThatLostSome(t *testing.T) {
	t.Parallel()
	master := testsupport.StartRedis(t)
	replica := testsupport.StartRedis(t, testsupport.RedisReplicaOf(master))
	g := &rig{Client: testsupport.Client{T: t, Conn: master.Conn()}, redis: master, store: openStore(t, master.URL())}
	d := newTotalsFile(t)
	run := d.job(g.store, TotalsOptions{Key: "totals"}, nil)
	flushed := func(want map[string]int64) {
		t.Helper()
		if err := run(); err != nil {
			t.Fatal(err)
		}
		same(t, "counts", want, d.counts())
	}
	all := g.fillCounters("totals", 300)
	g.Do("WAIT", 1, 5000)
	flushed(all)
	kept := maps.Clone(all)

	// The replica is cut off. Increments that are acknowledged from now on will be lost.
	promoted := &rig{Client: testsupport.Client{T: t, Conn: replica.Conn()}, store: openStore(t, replica.URL())}
	promoted.Do("REPLICAOF", "NO", "ONE")
	for i := range 100 {
		field := fmt.Sprintf("article:%d", i*3)
		g.Do("HINCRBY", "totals", field, 10)
		all[field] += 10
	}
	g.Do("HINCRBY", "totals", "new", 4)
	all["new"] = 4
	flushed(all)

	// After the failover, new increments are added to the older totals.
	master.Kill()
	for i := range 50 {
		field := fmt.Sprintf("article:%d", i*3)
		promoted.Do("HINCRBY", "totals", field, 3)
		kept[field] += 3
	}
	stop := d.job(promoted.store, TotalsOptions{Key: "totals"}, func(c *flush.Config) { c.OnDecrease = flush.DecreaseStop })
	if err := stop(); !errors.Is(err, flush.ErrDecreased) {
		t.Errorf("by default: %v, want ErrDecreased", err)
	}
	same(t, "counts after it has stopped", all, d.counts())

	run = d.job(promoted.store, TotalsOptions{Key: "totals"}, nil)
	promoted.Do("HSET", "totals", "new", 0) // the counter is gone, and a pass cannot see that
	flushed(kept)
	promoted.Do("HINCRBY", "totals", "article:0", 5)
	kept["article:0"] += 5
	flushed(kept)
}
