package demo

import (
	"context"
	"sync"
	"time"
)

const gaugeEvery = 250 * time.Millisecond

// gauge compares, while the demo runs, what is in the tables with what was
// written. The audit at the end does not rely on it.
type gauge struct {
	database *database
	expected *expected

	mu  sync.Mutex
	now reading
}

// reading is one comparison.
type reading struct {
	written, flushed amount
	waiting          amount // increments, and rows that are not as last written
	lag              time.Duration
	trouble          error // the database does not answer us
}

// run reads until ctx ends.
func (g *gauge) run(ctx context.Context) {
	for ctx.Err() == nil {
		read, cancel := context.WithTimeout(ctx, 3*time.Second)
		r, err := g.read(read)
		cancel()
		g.mu.Lock()
		if err == nil {
			g.now = r
		}
		g.now.trouble = err
		g.mu.Unlock()
		pause(ctx, gaugeEvery)
	}
}

func (g *gauge) read(ctx context.Context) (r reading, err error) {
	// The tables first: what is written meanwhile counts as waiting.
	views, err := g.database.views(ctx)
	if err != nil {
		return r, err
	}
	rows, err := readUsers(ctx, g.database.DB)
	if err != nil {
		return r, err
	}
	r.written = g.expected.total()
	r.flushed.Counters = views
	r.waiting.Counters = max(0, r.written.Counters-views)
	r.waiting.Hashes = g.expected.waiting(rows)
	r.flushed.Hashes = r.written.Hashes - r.waiting.Hashes
	r.lag = g.expected.lag(views, time.Now())
	return r, nil
}

// reading is the latest one.
func (g *gauge) reading() reading {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now
}
