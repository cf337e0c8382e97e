package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/flush/flushtest"
	"baton/internal/flush/mapping"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/testsupport"
)

// captureJob is a job that captures strings "s:<id>" into a table of id and v. It has one process at a time, which follows the stream until
// the process ends.
type captureJob struct {
	t       testing.TB
	open    func(dial func(string) error) *redisconn.Store
	table   *scanTable
	options Options
	name    string // default: capture
	into    string // the table; default: rows
	adopt   flush.Adopt
	keep    time.Duration
	columns map[string]mapping.ColumnSpec

	observing sync.Mutex
	observe   func(string) error

	store    *redisconn.Store
	pipeline *flush.Pipeline
	waiter   flush.Waiter // its source
	epoch    int64
	ids      int
	marks    int
	mu       sync.Mutex
	notes    []string
}

func newCaptureJob(t testing.TB, r *testsupport.Redis) *captureJob {
	return captureAt(t, redisconn.Options{URL: r.URL(), ClientName: "baton-test"})
}

func captureAt(t testing.TB, o redisconn.Options) *captureJob {
	j := &captureJob{t: t, table: newScanTable("id", "v"), columns: map[string]mapping.ColumnSpec{"id": {}, "v": {From: "$value"}}}
	j.open = func(step func(string) error) *redisconn.Store {
		o := o
		if o.TLS == nil { // with TLS no step can be observed
			o.Dial = redistest.Dial(step)
		}
		s, err := redisconn.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	t.Cleanup(func() { j.die() })
	return j
}

// at calls the observer at a step of the process.
func (j *captureJob) at(step string) error {
	j.observing.Lock()
	defer j.observing.Unlock()
	if j.observe == nil {
		return nil
	}
	return j.observe(step)
}

// watch sets the observer, which is called at every step.
func (j *captureJob) watch(observe func(string) error) {
	j.observing.Lock()
	defer j.observing.Unlock()
	j.observe = observe
}

// live starts a process if there is none.
func (j *captureJob) live() {
	j.t.Helper()
	if j.store != nil && j.pipeline != nil {
		return
	}
	if j.store == nil {
		j.store = j.open(j.at)
		j.epoch++
	}
	o := j.options
	o.Job, o.Type, o.Key, o.Value = cmp.Or(j.name, "capture"), "capture", cmp.Or(o.Key, "s:<id>"), cmp.Or(o.Value, "string")
	if o.Rows == 0 {
		o.Rows = 10
	}
	d, err := Describe(o)
	if err != nil {
		j.t.Fatal(err)
	}
	cfg := flush.Config{
		Job: cmp.Or(j.name, "capture"), NodeID: "n", Sink: j.table, Lanes: max(1, o.Lanes),
		Mapping: mapping.Spec{Table: cmp.Or(j.into, "rows"), Key: j.table.key, Columns: maps.Clone(j.columns)},
		NewID:   func() (string, error) { j.ids++; return fmt.Sprint("stage", j.ids), nil },
		OnNote: func(text string) {
			j.mu.Lock()
			defer j.mu.Unlock()
			j.notes = append(j.notes, text)
		},
		OnExpected: func(text string) {
			j.mu.Lock()
			defer j.mu.Unlock()
			j.notes = append(j.notes, "expected: "+text)
		},
		Retry: flush.Retry{Attempts: 1}, Adopt: j.adopt, KeepDeleted: j.keep,
	}
	d.Configure(&cfg, j.store)
	open := cfg.NewSources
	cfg.NewSources = func(inputs []string) ([]flush.Source, error) {
		sources, err := open(inputs)
		if err == nil {
			j.waiter = sources[0].(flush.Waiter)
		}
		return sources, err
	}
	cfg = flushtest.Observed(cfg, func(s flushtest.Step) error { return j.at(string(s)) })
	if j.pipeline, err = flush.New(cfg); err != nil {
		j.t.Fatal(err)
	}
}

// die ends the process.
func (j *captureJob) die() {
	if j.store != nil {
		_ = j.store.Close()
	}
	j.store, j.pipeline = nil, nil
}

// reload gives the process the present settings of the job.
func (j *captureJob) reload() {
	j.t.Helper()
	if j.pipeline != nil {
		if err := j.pipeline.Release(); err != nil {
			j.t.Fatal(err)
		}
	}
	j.pipeline = nil
}

func (j *captureJob) run(ctx context.Context) error {
	j.t.Helper()
	j.live()
	_, err := j.pipeline.Run(ctx, leader{j.epoch})
	return err
}

// must runs until a command of this moment has been flushed.
func (j *captureJob) must(c testsupport.Client) {
	j.t.Helper()
	j.mark(c)
	if err := j.until(j.marked); err != nil {
		j.t.Fatal(err)
	}
}

// until runs until so returns true or a run fails.
func (j *captureJob) until(so func() bool) error {
	j.t.Helper()
	for limit := time.Now().Add(time.Minute); time.Now().Before(limit); {
		if err := j.run(j.t.Context()); err != nil {
			return err
		}
		if so() {
			return nil
		}
		if err := j.waiter.Wait(j.t.Context()); err != nil {
			return err
		}
	}
	j.t.Fatal("it never comes to that")
	return nil
}

var errDies = errors.New("the process dies here")

// mark changes a key. marked tells when that change is in the table.
func (j *captureJob) mark(c testsupport.Client) {
	j.t.Helper()
	j.marks++
	switch j.options.Value {
	case "set", "zset":
		c.Do("DEL", "s:mark")
		command := []any{"s:mark", j.marks}
		if j.options.Value == "zset" {
			command = []any{"s:mark", "1", j.marks}
		}
		c.Do(map[string]string{"set": "SADD", "zset": "ZADD"}[j.options.Value], command...)
	default:
		c.Do("SET", "s:mark", j.marks)
	}
}

func (j *captureJob) marked() bool {
	texts := j.table.texts()
	_, member := texts[fmt.Sprintf("mark|%d", j.marks)]
	return member || texts["mark"] == fmt.Sprint(j.marks)
}

// told returns the notes since its last call.
func (j *captureJob) told() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	text := strings.Join(j.notes, "\n")
	j.notes = nil
	return text
}

// equal compares the table with Redis, row by row.
func (j *captureJob) equal(c testsupport.Client) {
	j.t.Helper()
	same(j.t, "rows", j.want(c), j.table.texts())
}

// want returns the rows that Redis has.
func (j *captureJob) want(c testsupport.Client) map[string]string {
	if j.options.Value == "set" || j.options.Value == "zset" {
		return membersOfAll(j.t, c, j.options.Value)
	}
	return contentsOf(j.t, c)
}

// contentsOf returns the strings "s:<id>" by their ids.
func contentsOf(t testing.TB, c testsupport.Client) map[string]string {
	t.Helper()
	all := map[string]string{}
	keys, err := redis.Strings(c.Do("KEYS", "s:*"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if c.Str("TYPE", key) == "string" {
			all[strings.TrimPrefix(key, "s:")] = c.Str("GET", key)
		}
	}
	return all
}

// mustEqual runs until a command of this moment has been flushed, and compares.
func (j *captureJob) mustEqual(c testsupport.Client) {
	j.t.Helper()
	j.must(c)
	j.equal(c)
}
