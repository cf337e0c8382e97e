package flush

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
)

const (
	// mostAhead is the number of small pages of all shards that may wait for conversion. With this number, Redis and the database need not
	// wait for each other, although the time that they need for a page varies. After a page that is not small, the reader waits until that
	// page has reached its lane.
	mostAhead = 2
	// smallPage is the maximum memory of a small page, in bytes.
	smallPage = 4 << 20
)

// pendingPage is a page on its way from the reader to the writer.
type pendingPage struct {
	page   Page
	batch  Batch
	queued *queuedBatch // nil if the page needs no turn
	// settled is closed once a huge page has left its stage. It is nil for other pages.
	settled chan struct{}
	space   *mapping.Space
}

// read runs in the reading goroutine. It gives each page to the converting goroutine.
func (r *run) read(ctx context.Context, source Source, stage Stage, lanes []chan pendingPage) (err error) {
	defer panicked(&err, "reading", source)
	c := &converting{run: r, pages: make(chan readPage, mostAhead), failed: make(chan struct{})}
	var running sync.WaitGroup
	running.Go(func() {
		if c.err = c.each(ctx, source, stage, lanes); c.err != nil {
			close(c.failed)
		}
		for p := range c.pages {
			c.left(p)
		}
	})
	end := sync.OnceFunc(func() {
		close(c.pages)
		running.Wait()
	})
	defer end()
	err = source.Read(ctx, stage, c.take)
	end()
	if err == nil || c.err != nil {
		return c.err
	}
	return failedSource(ctx, "read", source, err)
}

// converting is the shared state of a reader and the goroutine that converts its pages.
type converting struct {
	*run
	pages  chan readPage
	failed chan struct{} // closed if a page cannot reach its lane
	err    error         // why the page cannot reach its lane
}

// readPage is a page that the reader has read.
type readPage struct {
	page Page
	text int // the length of the records' texts, in bytes
	// handed is closed once the page's lane has the page. It is nil if the reader does not wait for the lane.
	handed chan struct{}
}

var errNotHanded = errors.New("flush: a page has not reached its lane")

// take gives a page to the goroutine that converts pages. If the page is not small, take waits until the page has reached its lane.
func (c *converting) take(page Page) error {
	text, memory := page.size()
	p := readPage{page: page, text: text}
	if memory > smallPage {
		p.handed = make(chan struct{})
	} else if !c.mayWait() {
		return errNotHanded
	}
	select {
	case c.pages <- p:
	case <-c.failed:
		c.left(p)
		return errNotHanded
	}
	if p.handed == nil {
		return nil
	}
	select {
	case <-p.handed:
		return nil
	case <-c.failed:
		return errNotHanded
	}
}

// left frees the queue slot of a small page.
func (r *run) left(p readPage) {
	if p.handed == nil {
		<-r.waiting
	}
}

// mayWait waits for a free queue slot and takes it for a small page. It returns false if a page has failed.
func (c *converting) mayWait() bool {
	select {
	case c.waiting <- struct{}{}:
		return true
	case <-c.failed:
		return false
	}
}

// size returns the length of the records' texts, and the memory of the page with its rows, in bytes.
func (p *Page) size() (text, memory int) {
	const record, input = 160, 56 // input is the size of an input's text and value
	for i := range p.Records {
		text += p.Records[i].Size()
		memory += record + input*len(p.Records[i].Inputs)
	}
	return text, memory + text
}

// small reports whether the page and its rows need little memory.
func (p *Page) small() bool {
	_, memory := p.size()
	return memory <= smallPage
}

// each converts the pages in their order, and gives each page to its lane.
func (c *converting) each(ctx context.Context, source Source, stage Stage, lanes []chan pendingPage) (err error) {
	defer panicked(&err, "converting the records from", source)
	next := c.dealer(lanes)
	for p := range c.pages {
		if err := c.one(ctx, source, stage, p, lanes, next); err != nil {
			return err
		}
		if p.handed != nil {
			close(p.handed)
		}
	}
	return nil
}

// one converts a page and gives it to its lane.
func (c *converting) one(
	ctx context.Context, source Source, stage Stage, p readPage, lanes []chan pendingPage, next func(*pendingPage) int,
) error {
	defer c.left(p) // also after a panic, because other shards wait for the queue slot
	w, err := c.convert(source, stage, p)
	if err == nil {
		w.batch.Rows, err = stage.changeLimit.keep(ctx, c.run, source, w.batch.Rows)
	}
	if err != nil {
		return err
	}
	lane := next(&w)
	if lane < 0 || lane >= len(lanes) {
		return fmt.Errorf("%s gave a page for lane %d of %d", source.Name(), lane, len(lanes))
	}
	return c.hand(ctx, w, lanes[lane])
}

// hand gives a page to its lane. While too many pages are being written or are waiting for their lanes, hand waits. After a huge page, hand
// also waits until that page has left its stage.
func (r *run) hand(ctx context.Context, w pendingPage, lane chan<- pendingPage) error {
	select {
	case r.underway <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case lane <- w:
	case <-ctx.Done():
		<-r.underway
		return context.Cause(ctx)
	}
	runtime.Gosched() // lets the lane write this page before the next page is converted, because the database is waiting for a page
	if w.settled == nil {
		return nil
	}
	select {
	case <-w.settled:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// dealer returns a function that chooses the lane of a page. Pages with the lane InOrder go to the lanes by turns. If there are several
// lanes, the function also gives each of these pages its place in the commit queue.
func (r *run) dealer(lanes []chan pendingPage) func(w *pendingPage) int {
	turns, pages := r.newCommitQueue(), 0
	return func(w *pendingPage) int {
		switch {
		case w.page.Lane != InOrder:
			return w.page.Lane
		case len(lanes) == 1:
			return 0
		}
		w.queued = turns.next(w.batch.Rows)
		pages++
		return (pages - 1) % len(lanes)
	}
}

func (r *run) convert(source Source, stage Stage, p readPage) (pendingPage, error) {
	page := p.page
	if page.Part < 0 && page.Move == nil && r.m.Adds() {
		return pendingPage{}, errors.New("the source gave a page without a part number; its increments could be added twice")
	}
	b := Batch{
		ID: stage.ID, Job: stage.Job, Shard: source.Name(), Part: page.Part,
		Move: page.Move, Marks: page.Marks, DeadLimit: r.cfg.DeadLimit,
		Bytes: int64(p.text), Keep: Keep{r.cfg.KeepDeleted, WhyMissing},
	}
	if g := r.cfg.Inputs.Guarantee; g == row.ByPass || g == row.ByChanges {
		b.ID = source.Name() // the ID distinguishes dead letters
	}
	space, _ := r.spaces.Get().(*mapping.Space)
	if space == nil {
		space = new(mapping.Space)
	}
	b.Rows, b.Dead = r.m.Rows(page.Records, r.cfg.OnMissing, space)
	w := pendingPage{page: page, batch: b, space: space}
	if page.huge() {
		w.settled = make(chan struct{})
		release()
	}
	return w, nil
}
