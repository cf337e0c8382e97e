package idlist

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
)

const (
	// firstPages of each lane are used while the ids of the others are collected and sorted.
	firstPages = 2
	// growth is how many times as many ids as the ones before the next ones are: to collect them
	// takes less time than to read the rows of those and to write them, also where Redis serves that first.
	growth = 2
)

// collector returns the next ids of a pass, sorted: as many as fit, or some more than most. more is false with the
// last of them.
type collector = func(ctx context.Context, most int) (ids *List, more bool, err error)

// Ahead collects the ids of a pass in several lists, and the next one while the one before is used, unless the ids
// of that are long.
// page is how many ids a page of each lane has together. All that was begun has ended when Ahead returns.
func Ahead(ctx context.Context, page int, collect collector, use func(*List) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	lists, used, collected := make(chan *List), make(chan struct{}, 1), make(chan error, 1)
	go func() {
		defer close(lists)
		defer func() {
			if p := recover(); p != nil { // a failed run, as in any other part of a job
				collected <- fmt.Errorf("collecting ids panicked: %v\n%s", p, debug.Stack())
			}
		}()
		collected <- collectAll(ctx, firstPages*page, collect, lists, used)
	}()
	var err error
	for ids := range lists {
		if err = use(ids); err != nil {
			break
		}
		if ids.Long() {
			used <- struct{}{}
		}
	}
	stop(err)
	if failed := <-collected; err == nil {
		err = failed
	}
	return err
}

func collectAll(ctx context.Context, most int, collect collector, lists chan<- *List, used <-chan struct{}) error {
	for more := true; more; most = min(most, math.MaxInt/growth) * growth {
		ids, goesOn, err := collect(ctx, most)
		if err != nil {
			return err
		}
		select {
		case lists <- ids:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if ids.Long() {
			select {
			case <-used:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		more = goesOn
	}
	return nil
}
