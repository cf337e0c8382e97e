package source

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"baton/internal/flush"
	"baton/internal/flush/mapping"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/testsupport"
)

func TestTheDocumentedUserCanFlush(t *testing.T) {
	t.Parallel()
	r, o := redistest.StartWithUser(t)
	store := redistest.Open(t, o)
	conn := r.Conn()
	if _, err := conn.Do("SELECT", 1); err != nil {
		t.Fatal(err)
	}
	g := &rig{Client: testsupport.Client{T: t, Conn: conn}, redis: r, store: store}
	db := newDatabase()
	want := g.fillCounters("views:3", 100)
	db.drain(t, g.counters(CountersOptions{}))
	same(t, "counts", want, db.counts())
	for _, zset := range []bool{false, true} {
		g.change(zset, "1", "one", 1)
		g.remove(zset, "2")
		db.drain(t, g.hashes(IndexedOptions{}))
	}
	same(t, "rows", map[string]string{"1": "1|one|1"}, db.rows())
	if _, err := g.counters(CountersOptions{}).Backlog(t.Context()); err != nil {
		t.Error(err)
	}
}

// fewRights is a job of one kind of source, run by a user who has only the commands that doctor checks.
type fewRights struct {
	options Options
	fill    func(g *rig)
	run     func(g *rig, store *redisconn.Store) error
	// spare are commands that this job needs only in other cases: rows that are refused, a trim, or other readers of the source.
	spare string
}

func flushOf(src flush.Source, g *rig) error {
	db := newDatabase()
	_, err := db.flush(g.T.Context(), src, nil)
	if err == nil && len(db.counts())+len(db.rows()) == 0 {
		return errors.New("nothing was flushed")
	}
	return err
}

var withFewRights = map[string]fewRights{
	"counters": {
		options: Options{Job: "views", Type: "counters", Key: "views:3"}, fill: func(g *rig) { g.fillCounters("views:3", 100) },
		run: func(g *rig, s *redisconn.Store) error { return flushOf(countersOn(g.T, s, CountersOptions{}), g) },
	},
	"plain counters": {
		options: Options{Job: "hits", Type: "counters", Key: "hits:<page>", Changed: "changed:hits"},
		fill:    func(g *rig) { g.fillPlain(false, 10) },
		run:     func(g *rig, s *redisconn.Store) error { return flushOf(plainOn(g.T, s, PlainCountersOptions{}), g) },
	},
	"totals": {
		options: Options{Job: "totals", Type: "counters", Key: "totals", Watermark: true},
		fill:    func(g *rig) { g.Do("HSET", "totals", "a", 1, "b", 2) },
		run:     func(g *rig, s *redisconn.Store) error { return flushOf(totalsOn(g.T, s, TotalsOptions{}), g) },
	},
	"totals with a key each": {
		options: Options{Job: "totals", Type: "counters", Key: "total:<page>", Watermark: true},
		fill:    func(g *rig) { g.Do("MSET", "total:a", 1, "total:b", 2) },
		run: func(g *rig, s *redisconn.Store) error {
			return flushOf(totalsOn(g.T, s, TotalsOptions{Key: "total:<page>"}), g)
		},
	},
	"hashes by a set": {
		options: Options{Job: "users", Type: "hashes", Key: "user:<id>", Changed: "changed:user"},
		fill:    func(g *rig) { g.change(false, "1", "one", 1); g.remove(false, "2") },
		run:     func(g *rig, s *redisconn.Store) error { return flushOf(hashesOn(g.T, s, IndexedOptions{}), g) },
		spare:   "hincrby",
	},
	"hashes by a zset": {
		options: Options{Job: "users", Type: "hashes", Key: "user:<id>", Changed: "changed:user"},
		fill:    func(g *rig) { g.change(true, "1", "one", 1); g.remove(true, "2") },
		run:     func(g *rig, s *redisconn.Store) error { return flushOf(hashesOn(g.T, s, IndexedOptions{}), g) },
		spare:   "hincrby",
	},
	"zset": {
		options: Options{Job: "board", Type: "zset", Key: "board", Changed: "changed:board"},
		fill:    func(g *rig) { g.score(false, "ann", 1); g.score(false, "bob", nil) },
		run:     func(g *rig, s *redisconn.Store) error { return flushOf(zsetOn(g.T, s, IndexedOptions{}), g) },
		spare:   "hincrby",
	},
	"list": {
		options: Options{Job: "orders", Type: "list", Key: "orders"},
		fill:    func(g *rig) { g.fillList("orders", 10, map[string]int64{}) },
		run:     func(g *rig, s *redisconn.Store) error { return flushOf(listOn(g.T, s, ListOptions{}), g) },
		spare:   "exists",
	},
	"stream": {
		options: Options{Job: "events", Type: "stream", Key: "events"}, fill: func(g *rig) { g.fillStream(1, 10, nil) },
		run:   func(g *rig, s *redisconn.Store) error { return flushOf(streamOn(g.T, s, StreamOptions{}), g) },
		spare: "type xrevrange multi exec",
	},
	"scan of strings": {
		options: Options{Job: "scan", Type: "scan", Key: "session:<id>", Value: "string"},
		fill:    func(g *rig) { g.Do("SET", "session:1", "one") },
		run:     func(g *rig, s *redisconn.Store) error { return passTwice(sessions(s), g) },
	},
	"scan of hashes": {
		options: Options{Job: "scan", Type: "scan", Key: "h:<id>", Value: "hash"},
		fill:    func(g *rig) { g.Do("HSET", "h:1", "v", "one") },
		run: func(g *rig, s *redisconn.Store) error {
			return passTwice(&scanJob{store: s, table: newScanTable("id", "v"), options: ScanOptions{Key: "h:<id>"},
				columns: map[string]mapping.ColumnSpec{"id": {}, "v": {}}}, g)
		},
		spare: "multi exists exec eval evalsha",
	},
	"scan of zsets": {
		options: Options{Job: "scan", Type: "scan", Key: "z:<id>", Value: "zset"},
		fill:    func(g *rig) { g.Do("ZADD", "z:1", 1, "m") },
		run: func(g *rig, s *redisconn.Store) error {
			return passTwice(&scanJob{store: s, table: newScanTable("id m", "v"), options: ScanOptions{Key: "z:<id>", Value: "zset"},
				columns: map[string]mapping.ColumnSpec{"id": {}, "m": {From: "$member"}, "v": {From: "$score"}}}, g)
		},
		spare: "type",
	},
}

// passTwice makes a pass, and then one that finds a row without a key.
func passTwice(j *scanJob, g *rig) error {
	if err := j.run(g.T.Context()); err != nil {
		return err
	}
	if len(j.table.texts()) == 0 {
		return errors.New("nothing was flushed")
	}
	g.Do("FLUSHDB")
	return j.run(g.T.Context())
}

// Each source runs with the commands that doctor checks. It fails if any one of them is missing, apart from the spare ones.
func TestEachSourceNeedsWhatDoctorAsksForAndNoMore(t *testing.T) {
	for name, c := range withFewRights {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			described, err := Describe(c.options)
			if err != nil {
				t.Fatal(err)
			}
			c.fill(g)
			var granted []string
			for _, p := range described.Access(false, false).Keys {
				for _, command := range p.Sent(g.Str("TYPE", p.Key)) {
					granted = append(granted, strings.ToLower(strings.Fields(command)[0]))
				}
			}
			slices.Sort(granted)
			granted = slices.Compact(granted)
			run := func(without string) error {
				g.Do("FLUSHALL")
				g.Do("SCRIPT", "FLUSH")
				c.fill(g)
				acl := []any{"SETUSER", "few", "reset", "on", ">pw", "~*", "&*"}
				for _, command := range granted {
					if command != without {
						acl = append(acl, "+"+command)
					}
				}
				g.Do("ACL", acl...)
				return c.run(g, redistest.Open(t, redisconn.Options{URL: g.redis.URL(), Username: "few",
					Password: func() (string, error) { return "pw", nil }}))
			}
			if err := run(""); err != nil {
				t.Errorf("with %v: %v", granted, err)
			}
			for _, command := range granted {
				spare := slices.Contains(strings.Fields(c.spare), command)
				if err := run(command); (err == nil) != spare {
					t.Errorf("without %s: %v", command, err)
				}
			}
		})
	}
}
