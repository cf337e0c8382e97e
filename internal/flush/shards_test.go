package flush_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/flushtest"
	"baton/internal/flush/row"
)

// shardsOf returns that many shards with that many pages each. takes returns the time for which each call takes.
func shardsOf(shards, pages int, takes func(call string)) (all []flush.Source) {
	for i := range shards {
		var of []flush.Page
		for j := range pages {
			of = append(of, user(fmt.Sprint(100*i+j), "Ann"))
		}
		all = append(all, hooked(func(call string) error {
			takes(call)
			return nil
		}, flushtest.NewScript(fmt.Sprint("shard ", i), of...)))
	}
	return all
}

// peak counts how many goroutines do something at the same time.
type peak struct {
	mu       sync.Mutex
	now, top int
}

func (p *peak) during(act func()) {
	p.mu.Lock()
	p.now++
	p.top = max(p.top, p.now)
	p.mu.Unlock()
	act()
	p.mu.Lock()
	p.now--
	p.mu.Unlock()
}

func TestShardsAreReadAtTheSameTime(t *testing.T) {
	for lanes, want := range map[int]time.Duration{1: 3 * time.Second, 2: 2 * time.Second, 16: 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			cfg, db := users(shardsOf(6, 1, func(call string) {
				if call == "read" {
					time.Sleep(time.Second)
				}
			})...)
			cfg.Lanes = lanes
			began := time.Now()
			got, err := mustNew(t, cfg).Run(t.Context(), leader(1))
			if err != nil || got.Rows != 6 || db.Count("users") != 6 {
				t.Errorf("%d lanes: result is %+v, %v", lanes, got, err)
			}
			if took := time.Since(began); took != want {
				t.Errorf("%d lanes: six shards took %v, want %v", lanes, took, want)
			}
		})
	}
}

// With any number of shards, a job has as many connections as lanes. It holds as many pages as with one shard, two small ones, and one for
// each reader.
func TestShardsShareConnectionsAndPages(t *testing.T) {
	for _, lanes := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			var read, most int
			var mu sync.Mutex
			count := func(by int) {
				mu.Lock()
				defer mu.Unlock()
				read += by
				most = max(most, read)
			}
			cfg, _ := users(shardsOf(9, 20, func(call string) {
				if call == "page" {
					count(1)
				}
			})...)
			sink := cfg.Sink.(*fakeSink)
			var writing peak
			cfg.Sink = &sinkFunc{fakeSink: sink, apply: func(
				ctx context.Context, f flush.Fence, p *row.Plan, b flush.Batch,
			) (out flush.Outcome, err error) {
				writing.during(func() {
					time.Sleep(time.Second)
					out, err = sink.Apply(ctx, f, p, b)
				})
				count(-1)
				return out, err
			}}
			cfg.Lanes = lanes
			got, err := mustNew(t, cfg).Run(t.Context(), leader(1))
			if err != nil || got.Rows != 180 {
				t.Errorf("result is %+v, %v", got, err)
			}
			if writing.top > lanes {
				t.Errorf("%d connections of %d", writing.top, lanes)
			}
			pages := map[int]int{1: 1, 3: 6}[lanes]
			if limit := pages + 2 + flush.ShardsAtOnce(9, lanes); most > limit {
				t.Errorf("%d lanes: %d pages were held, want at most %d", lanes, most, limit)
			}
		})
	}
}

func TestNoShardIsBegunAfterTheTermHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := errors.New("the term is over")
		ctx, end := context.WithCancelCause(t.Context())
		sources := shardsOf(6, 1, func(call string) {
			if call == "read" {
				time.Sleep(time.Second)
				end(over)
			}
		})
		cfg, _ := users(sources...)
		_, err := mustNew(t, cfg).Run(ctx, leader(1))
		if !errors.Is(err, over) || strings.Count(err.Error(), over.Error()) != 1 {
			t.Errorf("run ended with %v", err)
		}
		begun := slices.DeleteFunc(sources, func(s flush.Source) bool { return len(s.(*flushtest.Script).Calls()) == 0 })
		if len(begun) != 2 {
			t.Errorf("%d shards were begun", len(begun))
		}
	})
}

func TestAShardThatPanicsFailsTheRun(t *testing.T) {
	cfg, _ := users(shardsOf(3, 1, func(call string) {
		if call == "stage" {
			panic("boom")
		}
	})...)
	_, err := mustNew(t, cfg).Run(t.Context(), leader(1))
	if err == nil || !strings.Contains(err.Error(), "panicked: boom") {
		t.Errorf("run ended with %v", err)
	}
}

// brittle is a source whose name panics once, when its first page is converted.
type brittle struct {
	*flushtest.Script
	armed atomic.Bool
}

func (b *brittle) Read(ctx context.Context, s flush.Stage, yield func(flush.Page) error) error {
	b.armed.Store(true)
	return b.Script.Read(ctx, s, yield)
}

func (b *brittle) Name() string {
	if b.armed.Swap(false) {
		panic("boom")
	}
	return b.Script.Name()
}

// If the conversion of a small page panics, the page must free its queue slot, since other shards wait for it.
func TestShardsWhoseConversionPanicsEnd(t *testing.T) {
	for range 20 { // the result depends on which shard is first
		synctest.Test(t, func(t *testing.T) {
			var sources []flush.Source
			for i := range 8 {
				page := user(fmt.Sprint(i), "Ann")
				sources = append(sources, &brittle{Script: flushtest.NewScript(fmt.Sprint("shard ", i), page, page, page)})
			}
			cfg, _ := users(sources...)
			cfg.Lanes = 4
			_, err := mustNew(t, cfg).Run(t.Context(), leader(1))
			if err == nil || !strings.Contains(err.Error(), "converting the records from shard") {
				t.Errorf("run ended with %v", err)
			}
		})
	}
}
