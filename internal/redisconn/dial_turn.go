package redisconn

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// patience is how long firstOf waits for one server before it asks the next one, too.
func (s *Store) patience() time.Duration { return min(200*time.Millisecond, s.opts.Timeout/5) }

// firstOf asks servers in turn until one answers, and returns its number. After a failure it asks
// the next one at once, and after patience if the server is silent: one that hangs must not use
// up the time of the others. A late answer still counts if it comes first.
func firstOf[T any](ctx context.Context, addresses []string, patience time.Duration,
	ask func(context.Context, string) (T, error)) (answer T, at int, err error) {
	type result struct {
		answer T
		at     int
		err    error
	}
	var asking sync.WaitGroup
	defer asking.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the other attempts

	results := make(chan result, len(addresses))
	next, waiting := 0, 0
	start := func() {
		i := next
		next, waiting = next+1, waiting+1
		asking.Go(func() {
			a, err := ask(ctx, addresses[i])
			results <- result{a, i, err}
		})
	}
	timer := time.NewTicker(patience)
	defer timer.Stop()
	for start(); waiting > 0; {
		select {
		case r := <-results:
			waiting--
			if r.err == nil {
				return r.answer, r.at, nil
			}
			if err == nil {
				err = r.err
			} else {
				err = fmt.Errorf("%w; %w", err, r.err)
			}
			if ctx.Err() != nil || next == len(addresses) {
				continue
			}
			timer.Reset(patience)
			start()
		case <-timer.C:
			if next < len(addresses) {
				start()
			}
		}
	}
	return answer, 0, err
}
