package flush

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// mostShards is the maximum number of shards of a job that are flushed at the same time. The limit bounds the memory, because each shard
// holds the pages that it has read.
const mostShards = 4

// ShardsAtOnce returns how many of the shards are flushed at the same time. That is one shard more than there are lanes, so that another
// shard is read while the lanes write.
func ShardsAtOnce(shards, lanes int) int { return min(shards, max(1, lanes)+1, mostShards) }

// shards flushes all sources, a few at a time. If the source of one shard fails, the other shards are still flushed. Any other failure ends
// the flush of all shards.
func (r *run) shards(ctx context.Context, sources []Source) error {
	if len(sources) == 1 {
		return r.flush(ctx, sources[0])
	}
	going, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r.stop = stop
	next := make(chan int)
	failures := make([]error, len(sources)+1) // the last one is a failure that ends all shards
	var running sync.WaitGroup
	var ended atomic.Bool
	end := func(err error) {
		ended.Store(true)
		stop(err) // a later cause does not replace the first one
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

// flushSafely calls flush, and turns a panic into an error, because a panic in this goroutine would end the process.
func (r *run) flushSafely(ctx context.Context, source Source) (err error) {
	defer panicked(&err, "flushing", source)
	return r.flush(ctx, source)
}
