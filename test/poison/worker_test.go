package poison_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/flushtest"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
	"baton/internal/flush/source"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/open"
	"baton/internal/flush/sql/sqltest"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
)

// workerEnv holds the spec of a worker process.
const workerEnv = "BATON_TEST_WORKER"

// spec says what a worker flushes. It crosses to another process as JSON.
type spec struct {
	Driver, DSN, RedisURL string
	Source                string // hashes, zset or list
	Epoch                 int64
	KillAt                string // a step of the flush, of its source or of the database
	Times                 int    // how often it comes by before
}

// leadership is a term of which nobody doubts that it is the newest.
type leadership int64

func (l leadership) Owner() string { return fmt.Sprint("owner-", int64(l)) }
func (l leadership) Epoch() int64  { return int64(l) }
func (l leadership) Raise(context.Context, int64) (int64, error) {
	return 0, errors.New("somebody newer is there")
}

// work is the program of a worker process: it flushes until nothing is pending, and
// dies at a step if it is told to.
func work(text string) (code int) {
	var s spec
	err := json.Unmarshal([]byte(text), &s)
	if err == nil {
		err = s.flush()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// die ends the process at the step, when it has come by often enough.
func (s *spec) die() func(step string) error {
	var mu sync.Mutex
	return func(step string) error {
		mu.Lock()
		defer mu.Unlock()
		if step != s.KillAt {
			return nil
		}
		if s.Times--; s.Times < 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}
}

func (s spec) flush() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	at := (&s).die()
	store, err := redisconn.Open(redisconn.Options{URL: s.RedisURL, Dial: redistest.Dial(func(step string) error {
		if step == redistest.After("stage_remove") || step == redistest.After("list_trim") {
			step = "page removed"
		}
		return at(step)
	})})
	if err != nil {
		return err
	}
	dialect, err := open.Dialect(s.Driver)
	if err != nil {
		return err
	}
	dialect = sqltest.Observed(dialect, func(step sqltest.Step) error { return at(string(step)) })
	sink, err := sql.New(dialect, sql.Options{Name: "main", DSN: s.DSN, TTL: 30 * time.Second})
	if err != nil {
		return err
	}
	config := flush.Config{
		Job: s.Source, NodeID: "n", Sink: sink,
		NewID:   func() (string, error) { return rand.Text(), nil },
		Mapping: mapping.Spec{Table: s.Source + "_rows", Key: []string{"id"}},
	}
	from := source.Options{Job: s.Source, Type: "hashes", Key: "row:<id>", Changed: "changed", Rows: batchRows}
	if s.Source == "zset" {
		config.Mapping.Key = []string{"member"}
		config.Mapping.Columns = map[string]mapping.ColumnSpec{"member": {From: row.InputMember}, "score": {From: row.InputScore}}
		from = source.Options{Job: s.Source, Type: "zset", Key: "board", Changed: "changed", Rows: batchRows}
	}
	if s.Source == "list" {
		// Inserted, not upserted: a row that comes twice is told.
		config.Mapping.Key, config.Mapping.Mode = nil, mapping.ModeInsert
		from = source.Options{Job: s.Source, Type: "list", Key: "items", Rows: batchRows}
	}
	source, err := source.Describe(from)
	if err != nil {
		return err
	}
	source.Configure(&config, store)
	pipeline, err := flush.New(flushtest.Observed(config, func(step flushtest.Step) error { return at(string(step)) }))
	if err != nil {
		return err
	}
	_, err = pipeline.Run(ctx, leadership(s.Epoch))
	return errors.Join(err, sink.Close(), store.Close())
}
