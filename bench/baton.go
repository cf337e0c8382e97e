package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/open"
	"baton/internal/redisconn"
)

// batonClient is the name of baton's connections in Redis.
const batonClient = "baton:bench"

// batonProgram returns baton's program, built as in the daemon, with the given number of lanes.
func batonProgram(e engine, name string, data dataset, lanes int) program {
	return program{name: name, role: roleBaton, redis: true, data: data, lanes: lanes,
		prepare: func(ctx context.Context, t task) (func(context.Context) (int64, error), error) {
			pipeline, err := newPipeline(e, data, t, lanes)
			if err != nil {
				return nil, err
			}
			lead := newTerm()
			// A leader takes its fence once in a term, and knows its table after that.
			if _, err := pipeline.Run(ctx, lead); err != nil {
				return nil, err
			}
			return func(ctx context.Context) (int64, error) {
				result, err := pipeline.Run(ctx, lead)
				if err == nil && result.Dead > 0 {
					err = fmt.Errorf("baton refused %d rows", result.Dead)
				}
				return result.Rows, err
			}, nil
		}}
}

func newPipeline(e engine, data dataset, t task, lanes int) (*flush.Pipeline, error) {
	store, err := redisconn.Open(redisconn.Options{URL: "redis://" + t.Redis + "/0", ClientName: batonClient})
	if err != nil {
		return nil, err
	}
	sink, err := open.Database(e.driver, sql.Options{Name: "bench", DSN: t.DSN})
	if err != nil {
		return nil, err
	}
	job := "bench-" + rand.Text() // a new job has no place in the stream yet
	source, err := data.sourceOf(job, lanes)
	if err != nil {
		return nil, err
	}
	config := flush.Config{
		Job: job, NodeID: "bench", Sink: sink, Mapping: data.mapping, Lanes: lanes,
		NewID: func() (string, error) { return rand.Text(), nil },
	}
	source.Configure(&config, store)
	return flush.New(config)
}

// term is a leadership that never ends. Its epoch is above the epochs of earlier processes.
type term struct {
	owner string
	epoch int64
}

func newTerm() *term { return &term{owner: rand.Text(), epoch: time.Now().UnixMicro()} }

func (t *term) Owner() string { return t.owner }
func (t *term) Epoch() int64  { return t.epoch }

func (t *term) Raise(_ context.Context, floor int64) (int64, error) {
	t.epoch = floor + 1
	return t.epoch, nil
}
