package redisconn

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// patience returns the time that firstOf waits for one server before it also asks the next server.
func (s *Store) patience() time.Duration { return min(200*time.Millisecond, s.opts.Timeout/5) }

// firstOf asks servers one after the other until one answers. It returns the answer, and the position of this server in addresses.
// When a server fails, firstOf asks the next server immediately. When a server has not answered within the duration patience,
// firstOf also asks the next server, because a server that hangs must not use up the time of the others. A late answer still counts
// if it is the first answer.
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
