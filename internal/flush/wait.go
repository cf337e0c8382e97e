package flush

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// These are the shortest and the longest interval at which Wait polls sources that cannot wait. The interval grows while there is no work.
// The interval is a twentieth of the time since the last work, so it reaches its maximum after two seconds.
const (
	askEvery     = 10 * time.Millisecond
	askEveryIdle = 100 * time.Millisecond
)

// Wait returns when a source may have work. It returns an error if ctx has ended or a source fails. It waits at all sources that can wait,
// at the same time, and polls the other sources for pending changes. When Wait returns, none of these waits continues.
//
// Wake also makes Wait return.
//
// Before the first run of a pipeline, and after a failed run, Wait returns immediately, because only a run can check whether there is work.
func (p *Pipeline) Wait(ctx context.Context) error {
	c := p.compiled.Load()
	if c == nil {
		return ctx.Err()
	}
	waits := append(p.waitsFor(c.sources), p.untilWoken)
	waiting, cancel := context.WithCancel(ctx)
	first := make(chan error, len(waits))
	var all sync.WaitGroup
	for _, wait := range waits {
		all.Go(func() { first <- wait(waiting) })
	}
	err := <-first
	cancel()
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Wake makes the present call of Wait return, or else the next call. So a run begins after Wake even without pending changes. After that
// run has succeeded, every change from before the call of Wake is flushed.
func (p *Pipeline) Wake() {
	select {
	case p.woken <- struct{}{}:
	default: // an entry that Wait has not taken yet has the same effect
	}
}

func (p *Pipeline) untilWoken(ctx context.Context) error {
	select {
	case <-p.woken:
	case <-ctx.Done():
	}
	return nil
}

// waitsFor returns one function for each source that can wait, and one function that waits for all other sources.
func (p *Pipeline) waitsFor(sources []Source) []func(context.Context) error {
	var waits []func(context.Context) error
	var others []Source
	for _, source := range sources {
		w, ok := source.(Waiter)
		if !ok {
			others = append(others, source)
			continue
		}
		waits = append(waits, func(ctx context.Context) (err error) {
			defer panicked(&err, "waiting for", w)
			if err := w.Wait(ctx); err != nil {
				return fmt.Errorf("wait for work in %s: %w", w.Name(), err)
			}
			return nil
		})
	}
	if len(others) > 0 {
		waits = append(waits, func(ctx context.Context) (err error) {
			defer panicked(&err, "asking", others[0])
			return ask(ctx, func(ctx context.Context) (bool, error) { return p.pending(ctx, others) })
		})
	}
	return waits
}

func (p *Pipeline) pending(ctx context.Context, sources []Source) (bool, error) {
	if p.cfg.Pending == nil {
		backlog, err := Backlog(ctx, sources)
		return backlog > 0, err
	}
	some, err := p.cfg.Pending(ctx)
	if err != nil {
		return false, fmt.Errorf("look for work in %s: %w", sources[0].Name(), err)
	}
	return some, nil
}

// ask calls the function pending again and again until changes are pending.
func ask(ctx context.Context, pending func(context.Context) (bool, error)) error {
	began := time.Now()
	for {
		if some, err := pending(ctx); err != nil || some {
			return err
		}
		timer := time.NewTimer(min(max(time.Since(began)/20, askEvery), askEveryIdle))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}
