package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"baton/internal/flush"
	"baton/internal/redisstore"
	"baton/internal/sqlstore"
)

// batonClient is what baton's connections call themselves in Redis.
const batonClient = "baton:bench"

// batonProgram is put together as the daemon does it, with so many lanes.
func batonProgram(e engine, name string, data dataset, lanes int) program {
	return program{name: name, role: roleBaton, redis: true, data: data, lanes: lanes,
		prepare: func(ctx context.Context, t task) (func(context.Context) (int64, error), error) {
			pipeline, err := newPipeline(e, data, t, lanes)
			if err != nil {
				return nil, err
			}
			lead := newTerm()
			// A leader takes its fence once a term and knows its table by then.
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
	store, err := redisstore.Open(redisstore.Options{URL: "redis://" + t.Redis + "/0", ClientName: batonClient})
	if err != nil {
		return nil, err
	}
	sink, err := sqlstore.Open(sqlstore.Options{Name: "bench", Driver: e.driver, DSN: t.DSN})
	if err != nil {
		return nil, err
	}
	job := "bench-" + rand.Text() // which has been nowhere in the stream yet
	return flush.New(flush.Config{
		Job: job, NodeID: "bench", Sink: sink,
		NewSources: func(inputs []string) ([]flush.Source, error) {
			source, err := data.source(store, sourceOptions{job: job, inputs: inputs, lanes: lanes})
			return []flush.Source{source}, err
		},
		Mapping: data.mapping, Inputs: data.inputs, OnMissing: data.missing, Lanes: lanes,
		NewID: func() (string, error) { return rand.Text(), nil },
	})
}

// term is a leadership that lasts. Its epoch is above those of earlier processes.
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
