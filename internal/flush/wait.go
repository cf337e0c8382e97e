package flush

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// The poll interval of sources that cannot wait alone: while there is work, and after two seconds without. In between it is a twentieth
// of the time without work.
const (
	askEvery     = 10 * time.Millisecond
	askEveryIdle = 100 * time.Millisecond
)

// Wait returns when a source may have work, or with an error: that of ctx when it has ended, or of a source that fails. Sources that can
// wait do so, all at the same time; the others are polled for pending changes. It leaves nothing behind: every wait has ended when it
// returns.
//
// Wake makes it return, too.
//
// Before the first run of a pipeline, and after one that failed, it returns at once:
// it is up to the next run to check.
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

// Wake makes the present Wait return, or the next one, so that a run begins after this call even without pending changes: once that run
// has succeeded, everything older is flushed.
func (p *Pipeline) Wake() {
	select {
	case p.woken <- struct{}{}:
	default: // an entry that no Wait has taken yet does the same
	}
}

func (p *Pipeline) untilWoken(ctx context.Context) error {
	select {
	case <-p.woken:
	case <-ctx.Done():
	}
	return nil
}

// waitsFor is one wait for each source that can, and one for all of the others.
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

// ask polls until changes are pending.
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
