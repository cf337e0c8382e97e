package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"baton/internal/flush"
	"baton/internal/testsupport"
)

// rig is a Redis of one test, with a store on it and a producer's connection.
type rig struct {
	t     testing.TB
	redis *testsupport.Redis
	store *Store
	conn  redis.Conn
}

func newRig(t testing.TB, opts ...testsupport.RedisOption) *rig {
	t.Helper()
	r := testsupport.StartRedis(t, opts...)
	return &rig{t: t, redis: r, store: openStore(t, r.URL()), conn: r.Conn()}
}

func openStore(t testing.TB, url string) *Store {
	t.Helper()
	s, err := Open(Options{URL: url, ClientName: "baton-test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// do runs a command that must succeed.
func (g *rig) do(name string, args ...any) any {
	g.t.Helper()
	reply, err := g.conn.Do(name, args...)
	if err != nil {
		g.t.Fatalf("%s: %v", name, err)
	}
	return reply
}

func (g *rig) str(name string, args ...any) string {
	g.t.Helper()
	s, err := redis.String(g.do(name, args...), nil)
	if err != nil {
		g.t.Fatalf("%s: %v", name, err)
	}
	return s
}

func (g *rig) num(name string, args ...any) int64 {
	g.t.Helper()
	n, err := redis.Int64(g.do(name, args...), nil)
	if err != nil {
		g.t.Fatalf("%s: %v", name, err)
	}
	return n
}

// loadScripts spares a test the NOSCRIPT round trip before it loses a reply.
func (g *rig) loadScripts() {
	g.t.Helper()
	for _, s := range []*redis.Script{listStageScript, listTrimScript, lookScript, trimScript, stageScript, discardScript, removeScript, backlogScript, claimScripts.byString, missScripts.byString, finishScript} {
		if err := s.Load(g.conn); err != nil {
			g.t.Fatal(err)
		}
	}
}

func (g *rig) counters(o CountersOptions) *Counters {
	g.t.Helper()
	return countersOn(g.t, g.store, o)
}

func countersOn(t testing.TB, store *Store, o CountersOptions) *Counters {
	t.Helper()
	if o.Job == "" {
		o.Job = "views"
	}
	if o.Key == "" {
		o.Key = "views:3"
	}
	if o.Inputs == nil {
		o.Inputs = []string{"$field", "$value"}
	}
	src, err := NewCounters(store, o)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func (g *rig) hashes(o HashesOptions) *Hashes {
	g.t.Helper()
	return hashesOn(g.t, g.store, o)
}

func hashesOn(t testing.TB, store *Store, o HashesOptions) *Hashes {
	t.Helper()
	if o.Job == "" {
		o.Job = "users"
	}
	if o.Key == "" {
		o.Key = "user:<id>"
	}
	if o.Changed == "" {
		o.Changed = "changed:user"
	}
	if o.Inputs == nil {
		o.Inputs = []string{"id", "name", "n"}
	}
	if o.RemoveEvery == 0 {
		o.RemoveEvery = 1 // at once
	}
	src, err := NewHashes(store, o)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// stageNow stages something that must be pending.
func stageNow(t testing.TB, src flush.Source, id string) flush.Stage {
	t.Helper()
	st, ok, err := src.Stage(t.Context(), id, "")
	if err != nil || !ok {
		t.Fatalf("stage %s: ok %v, %v", src.Name(), ok, err)
	}
	return st
}

// readAll reads a stage page by page.
func readAll(t testing.TB, src flush.Source, st flush.Stage) []flush.Page {
	t.Helper()
	var pages []flush.Page
	err := src.Read(t.Context(), st, func(p flush.Page) error {
		pages = append(pages, p)
		return nil
	})
	if err != nil {
		t.Fatalf("read %s: %v", src.Name(), err)
	}
	return pages
}

// database is what a flush writes to: exactly what the protocol needs of one, that
// is a ledger and rows, changed together.
type database struct {
	mu     sync.Mutex
	ledger map[string]bool
	counts map[string]int64
	rows   map[string]string
	dead   map[string]string
	places map[string]string // by source, of those that keep their place here
	ids    atomic.Int64
}

func newDatabase() *database {
	return &database{ledger: map[string]bool{}, counts: map[string]int64{}, rows: map[string]string{}, dead: map[string]string{}, places: map[string]string{}}
}

// move does what stands for the ledger where a page has a move. Such a page's records
// have unique keys: none must come twice.
func (db *database) move(shard string, p flush.Page) (applied bool, err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	switch db.places[shard] {
	case p.Move.To:
		return true, nil
	case p.Move.From:
		db.places[shard] = p.Move.To
	default:
		return false, fmt.Errorf("%w: it is %q, not %q", flush.ErrMoved, db.places[shard], p.Move.From)
	}
	for _, r := range p.Records {
		if _, ok := db.rows[r.Key]; ok {
			return false, fmt.Errorf("record %s came twice", r.Key)
		}
	}
	return false, nil
}

func (db *database) apply(st flush.Stage, p flush.Page) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if p.Part >= 0 {
		entry := fmt.Sprintf("%s/%d", st.ID, p.Part)
		if db.ledger[entry] {
			return nil
		}
		db.ledger[entry] = true
	}
	for _, r := range p.Records {
		switch {
		case r.Err != nil:
			db.dead[r.Key] = r.Err.Error()
		case r.Gone:
			delete(db.rows, r.Key)
		case p.Part >= 0:
			n, err := strconv.ParseInt(r.Inputs[1].Text, 10, 64)
			if err != nil {
				return err
			}
			db.counts[r.Inputs[0].Text] += n
		default:
			db.rows[r.Key] = rowText(r)
		}
	}
	return nil
}

// rowText shows a row: fields by "|", a missing one as "-".
func rowText(r flush.Record) string {
	var texts []string
	for _, in := range r.Inputs {
		if in.OK {
			texts = append(texts, in.Text)
		} else {
			texts = append(texts, "-")
		}
	}
	return strings.Join(texts, "|")
}

// flushOnce does what the pipeline does: read ahead on one goroutine, write on the
// other. Every step of its own goes through observe too, like the source's steps.
func (db *database) flushOnce(ctx context.Context, src flush.Source, observe func(string) error) (more bool, err error) {
	if observe == nil {
		observe = func(string) error { return nil }
	}
	db.mu.Lock()
	place := db.places[src.Name()]
	db.mu.Unlock()
	st, ok, err := src.Stage(ctx, fmt.Sprintf("batch-%d", db.ids.Add(1)), place)
	if err != nil || !ok {
		return false, err
	}
	pages := make(chan flush.Page)
	group, ctx2 := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(pages)
		return src.Read(ctx2, st, func(p flush.Page) error {
			select {
			case pages <- p:
				return nil
			case <-ctx2.Done():
				return context.Cause(ctx2)
			}
		})
	})
	group.Go(func() error {
		for p := range pages {
			if err := observe("apply"); err != nil {
				return err
			}
			applied := false
			if p.Move != nil {
				var err error
				if applied, err = db.move(src.Name(), p); err != nil {
					return err
				}
			}
			if !applied {
				if err := db.apply(st, p); err != nil {
					return err
				}
			}
			if err := observe("applied"); err != nil {
				return err
			}
			if err := src.Done(ctx2, st, p); err != nil {
				return err
			}
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return true, err
	}
	err = src.Discard(ctx, st)
	if errors.Is(err, flush.ErrStaleStage) {
		err = nil // an earlier call did it, and its reply was lost
	}
	return true, err
}

// drain flushes until nothing is pending. What a run that crashed had under way may
// reach Redis after the first look at the stage; the flush then has to begin again, once.
func (db *database) drain(t testing.TB, src flush.Source) {
	t.Helper()
	late := false
	for range 100 {
		more, err := db.flushOnce(t.Context(), src, nil)
		if errors.Is(err, flush.ErrStaleStage) && !late {
			late = true
			continue
		}
		if err != nil {
			t.Fatalf("flush %s: %v", src.Name(), err)
		}
		if !more {
			return
		}
	}
	t.Fatalf("%s has something pending after 100 flushes", src.Name())
}

// difference is cmp.Diff, which takes long to find that much is the same.
func difference(want, got any) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got)
}

func same[V comparable](t testing.TB, what string, want, got map[string]V) {
	t.Helper()
	if maps.Equal(want, got) {
		return // which cmp finds too, slowly
	}
	if diff := cmp.Diff(want, got); diff != "" {
		if len(diff) > 2000 {
			diff = diff[:2000] + "…"
		}
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// nothingLeft asserts that a source's job has left no key of its own behind.
func (g *rig) nothingLeft() {
	g.t.Helper()
	keys, err := redis.Strings(g.do("KEYS", "*:baton:*"), nil)
	if err != nil || len(keys) > 0 {
		g.t.Errorf("keys left behind: %q, %v", keys, err)
	}
}
