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
	// mostAhead is how many small pages of all shards may wait for conversion: Redis and the database take varying time for a page, and
	// neither should wait for the other. The reader of a larger page waits.
	mostAhead = 2
	// smallPage is the most memory of a small page, in bytes.
	smallPage = 4 << 20
)

// work is a page on its way from the reader to the writer.
type work struct {
	page  Page
	batch Batch
	turn  *turn // nil: it needs no turn
	// settled, of a huge page, is closed once the page has left its stage; nil for other pages.
	settled chan struct{}
	space   *mapping.Space
}

// read is the reading goroutine. It gives each page to the one that converts it.
func (r *run) read(ctx context.Context, source Source, stage Stage, lanes []chan work) (err error) {
	defer panicked(&err, "reading", source)
	c := &converting{run: r, pages: make(chan taken, mostAhead), failed: make(chan struct{})}
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
	pages  chan taken
	failed chan struct{} // closed if a page cannot reach its lane
	err    error         // why it cannot
}

// taken is a page that was read.
type taken struct {
	page Page
	text int // bytes of its records
	// handed, if the reader waits for this page, is closed once the page's lane has it.
	handed chan struct{}
}

var errNotHanded = errors.New("flush: a page has not reached its lane")

// take gives a page to the goroutine that converts it. It waits until the page's lane has it, unless the
// page is small.
func (c *converting) take(page Page) error {
	text, memory := page.size()
	p := taken{page: page, text: text}
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
func (r *run) left(p taken) {
	if p.handed == nil {
		<-r.waiting
	}
}

// mayWait takes a queue slot for a small page, once one is free; false if a page has failed.
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
	const record, input = 160, 56 // of an input its text and its value
	for i := range p.Records {
		text += p.Records[i].Size()
		memory += record + input*len(p.Records[i].Inputs)
	}
	return text, memory + text
}

// small reports whether the page with its rows takes little memory.
func (p *Page) small() bool {
	_, memory := p.size()
	return memory <= smallPage
}

// each converts the pages in their order, and hands each to its lane.
func (c *converting) each(ctx context.Context, source Source, stage Stage, lanes []chan work) (err error) {
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

// one converts a page and hands it over.
func (c *converting) one(
	ctx context.Context, source Source, stage Stage, p taken, lanes []chan work, next func(*work) int,
) error {
	defer c.left(p) // after a panic, too: other shards wait for the place
	w, err := c.convert(source, stage, p)
	if err == nil {
		w.batch.Rows, err = stage.guard.keep(ctx, c.run, source, w.batch.Rows)
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

// hand gives a page to its lane, once few enough are being written or wait for that. After a huge page nothing is read until it has left
// its stage.
func (r *run) hand(ctx context.Context, w work, lane chan<- work) error {
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
	runtime.Gosched() // the lane writes it before the next page is converted: the database waits for that
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

// dealer chooses the lane for each page. Pages in order go to one lane after the other, and each has its turn.
func (r *run) dealer(lanes []chan work) func(w *work) int {
	turns, pages := r.newTurns(), 0
	return func(w *work) int {
		switch {
		case w.page.Lane != InOrder:
			return w.page.Lane
		case len(lanes) == 1:
			return 0
		}
		w.turn = turns.next(w.batch.Rows)
		pages++
		return (pages - 1) % len(lanes)
	}
}

func (r *run) convert(source Source, stage Stage, p taken) (work, error) {
	page := p.page
	if page.Part < 0 && page.Move == nil && r.m.Adds() {
		return work{}, errors.New("the source gave a page without a part number; its increments could be added twice")
	}
	b := Batch{
		ID: stage.ID, Job: stage.Job, Shard: source.Name(), Part: page.Part,
		Move: page.Move, Marks: page.Marks, DeadLimit: r.cfg.DeadLimit,
		Bytes: int64(p.text),
	}
	if g := r.cfg.Inputs.Guarantee; g == row.ByPass || g == row.ByChanges {
		b.ID = source.Name() // it distinguishes dead letters
	}
	space, _ := r.spaces.Get().(*mapping.Space)
	if space == nil {
		space = new(mapping.Space)
	}
	b.Rows, b.Dead = r.m.Rows(page.Records, r.cfg.OnMissing, space)
	w := work{page: page, batch: b, space: space}
	if page.huge() {
		w.settled = make(chan struct{})
		release()
	}
	return w, nil
}
