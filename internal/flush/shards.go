package flush

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// mostShards bounds how many shards of a job are flushed at a time: each holds the pages that it has read.
const mostShards = 4

// ShardsAtOnce is how many of the shards are flushed at a time: while the lanes write some, another one is read.
func ShardsAtOnce(shards, lanes int) int { return min(shards, max(1, lanes)+1, mostShards) }

// shards flushes all sources, some at a time. A shard that fails does not keep the others from being flushed; any other failure ends all
// of them.
func (r *run) shards(ctx context.Context, sources []Source) error {
	if len(sources) == 1 {
		return r.flush(ctx, sources[0])
	}
	going, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r.stop = stop
	next := make(chan int)
	failures := make([]error, len(sources)+1) // the last one is the failure of all
	var running sync.WaitGroup
	var ended atomic.Bool
	end := func(err error) {
		ended.Store(true)
		stop(err) // the first cause stays
	}
	for range ShardsAtOnce(len(sources), r.cfg.Lanes) {
		running.Go(func() {
			for i := range next {
				err := r.flushSafely(going, sources[i])
				if errors.As(err, new(sourceError)) {
					failures[i] = err
				} else if err != nil {
					end(err)
				}
			}
		})
	}
	for i := range sources {
		select {
		case next <- i:
		case <-going.Done():
			end(context.Cause(going))
		}
	}
	close(next)
	running.Wait()
	if ended.Load() {
		failures[len(sources)] = context.Cause(going)
	}
	return errors.Join(failures...)
}

// flushSafely is flush in a goroutine of its own: a panic there would end the process.
func (r *run) flushSafely(ctx context.Context, source Source) (err error) {
	defer panicked(&err, "flushing", source)
	return r.flush(ctx, source)
}
