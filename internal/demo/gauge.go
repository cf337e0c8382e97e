package demo

import (
	"context"
	"sync"
	"time"
)

const (
	gaugeEvery = 250 * time.Millisecond
	// settleAfter is how much longer the nodes may flush before a missing value counts as lost.
	settleAfter = 8 * time.Second
)

// gauge compares the tables with the acknowledged writes while the demo runs. The audit at the end does not use its results.
type gauge struct {
	database  *database
	naive     *naiveFleet // nil if no naive program runs
	expected  *expected
	recording *recording // nil if no picture is wanted

	served time.Duration // how long the nodes have been flushing
	nodes  tally
	beside tally

	mu  sync.Mutex
	now reading
}

func newGauge(d *database, n *naiveFleet, e *expected) *gauge {
	return &gauge{database: d, naive: n, expected: e, nodes: tally{}, beside: tally{}}
}

// reading is the result of one comparison.
type reading struct {
	at               time.Time // a time before the tables were read
	written, flushed amount
	waiting          amount // missing increments, and rows that differ from the last write
	lag              time.Duration
	damage           damage // only damage that is certain
	naive            damage
	trouble          error // error of the database, if it does not answer the demo
}

// run compares until ctx ends.
func (g *gauge) run(ctx context.Context) {
	for before := int64(0); ctx.Err() == nil; {
		read, cancel := context.WithTimeout(ctx, 3*time.Second)
		r, err := g.read(read)
		cancel()
		g.mu.Lock()
		if err == nil {
			g.now = r
			g.recording.frame(r)
		}
		g.now.trouble = err
		g.mu.Unlock()
		if r.flushed.Counters > before { // time counts only if flushes progress: a machine that pauses, or has no leader, loses no data
			g.served += gaugeEvery
			before = r.flushed.Counters
		}
		g.expected.remember(g.served)
		pause(ctx, gaugeEvery)
	}
}

func (g *gauge) read(ctx context.Context) (r reading, err error) {
	r.at = time.Now()
	// The tables are read before the written amount, so that a later write counts as waiting.
	counts, err := readCounts(ctx, g.database.DB, articlesQuery)
	if err != nil {
		return r, err
	}
	rows, err := readUsers(ctx, g.database.DB)
	if err != nil {
		return r, err
	}
	for _, n := range counts {
		r.flushed.Counters += n
	}
	r.written = g.expected.total()
	r.waiting = g.expected.waiting(counts, rows)
	r.flushed.Hashes = r.written.Hashes - r.waiting.Hashes
	r.lag = g.expected.lag(r.flushed.Counters, time.Now())
	r.damage = g.expected.damaged(g.served, counts, rows, g.nodes)
	sum := g.nodes.sum()
	r.damage.lost += sum.lost
	r.damage.twice += sum.twice
	if g.naive == nil {
		return r, nil
	}
	written := g.expected.counted()
	waiting, err := g.naive.waiting(ctx)
	if err == nil { // if Redis does not answer, only the naive program's counts are missing
		if counts, err = readCounts(ctx, g.naive.database.DB, naiveQuery); err != nil {
			return r, err
		}
		g.expected.damagedNaive(written, waiting, counts, g.beside)
	}
	r.naive = g.beside.sum()
	return r, nil
}

// reading returns the latest comparison.
func (g *gauge) reading() reading {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now
}
