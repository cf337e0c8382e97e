package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/redisconn"
	"baton/internal/redisconn/follow"
)

// Keys are the keys of a job and the rows of their values: a scan of them.
type Keys interface {
	flush.Source // Read reads all keys
	flush.Peeker
	// Pass returns the reason why the last Read may have missed some.
	Pass(s flush.Stage) (generation int64, missed error)
	Finds(inputs []string) error
	StillMissing(ctx context.Context, records []row.Record) ([]row.Record, error)
	// Matches reports whether a key belongs to the job. It does not keep the key.
	Matches(key string) bool
	// HasMembers reports whether each key has a row for each of its members.
	HasMembers() bool
	// Named is a record of a key with the inputs that its name alone gives.
	Named(key string) row.Record
	// Missing is StillMissing at the server of a connection; nil means wherever the keys are.
	Missing(ctx context.Context, c redisconn.Conn, records []row.Record) ([]row.Record, error)
	// ReadKeys reads some of the keys. The record of a missing key is Gone, unless keys have members.
	ReadKeys(ctx context.Context, c redisconn.Conn, keys []string, yield func(flush.Page) error) error
}

// Options describe a capture.
type Options struct {
	Job    string
	Prefix string // the common beginning of all keys
	// OnFlush is the reaction to a command that has emptied the database: stop, which is the default, pass or delete.
	OnFlush string
	// MemoryBudget bounds the keys that have changed and are not flushed yet, in bytes. Default 32 MiB.
	MemoryBudget int
}

// The choices of OnFlush.
const (
	flushStop, flushPass, flushDelete = "stop", "pass", "delete"
)

const defaultMemoryBudget = 32 << 20

// Capture is a flush.Source of the changed keys. Its position is in the database, and every page moves it.
//
// It follows the stream from the first Stage on, beside the job's runs, until Release, or until the store is closed. All captures of the
// same job and key share one feed.
type Capture struct {
	keys    Keys
	store   *redisconn.Store
	options Options
	reread  reread // to be owed at the next stage
	stage   string // the stage of batch
	batch   *batch
}

// New checks the options; it does not connect.
func New(store *redisconn.Store, keys Keys, o Options) (*Capture, error) {
	o.OnFlush = cmp.Or(o.OnFlush, flushStop)
	if choices := []string{flushStop, flushPass, flushDelete}; !slices.Contains(choices, o.OnFlush) {
		return nil, fmt.Errorf("on_flush: %q is unknown: it is stop, pass or delete", o.OnFlush)
	}
	if o.MemoryBudget <= 0 {
		o.MemoryBudget = defaultMemoryBudget
	}
	return &Capture{keys: keys, store: store, options: o}, nil
}

// Name is the pattern of the keys.
func (c *Capture) Name() string { return c.keys.Name() }

// attached is the name under which a store has the feed of a job.
func attached(job, key string) string { return "capture " + job + " " + key }

// Release stops following the streams for a job. The next Stage begins again.
func Release(store *redisconn.Store, job, key string) error { return store.Detach(attached(job, key)) }

// closer lets a store close a feed.
type closer struct{ *feed }

func (c closer) Close() error { c.close(); return nil }

// feed is the job's feed, made now if it does not exist.
func (c *Capture) feed() *feed {
	h := followerOf(c.store)
	made := c.store.Attached(attached(c.options.Job, c.Name()), func() io.Closer {
		return closer{newFeed(feedOptions{follower: h, prefix: c.options.Prefix, match: c.keys.Matches, budget: c.options.MemoryBudget})}
	})
	return made.(closer).feed
}

// Stage takes the changes from before its call, or begins a pass over all keys if some may have been missed. Its note says why.
// It returns flush.ErrEmptied after a command that emptied the database if on_flush is stop.
func (c *Capture) Stage(ctx context.Context, newID, position string) (st flush.Stage, ok bool, err error) {
	c.stage, c.batch = newID, nil
	f := c.feed()
	if err := f.resume(ctx, position); err != nil {
		return st, false, c.fail("follow the changes of", err)
	}
	if c.reread.reason != "" {
		f.owe(c.reread)
		c.reread = reread{}
	}
	if err := c.catchUp(ctx, f); err != nil {
		return st, false, c.fail("follow the changes of", err)
	}
	b, note, err := f.take(c.options.OnFlush)
	if b == nil || err != nil {
		return st, false, c.fail("read the changes of", err)
	}
	c.batch = b
	// After a pass the next stage has the changes made meanwhile, which complete the pass; a feed that is cut off does not know whether
	// there are any.
	return flush.Stage{ID: newID, Size: int64(len(b.keys)), Resumed: b.debt > 0 || b.cutOff, Note: note, Expected: !b.alarming}, true, nil
}

// catchUp waits until the feed has received all changes made before now.
func (c *Capture) catchUp(ctx context.Context, f *feed) error {
	if f.isCutOff() {
		return nil // the stage only moves the place
	}
	heads, err := c.heads(ctx, nil)
	if err != nil {
		return err
	}
	return f.catchUp(ctx, heads)
}

// heads are the ends of the histories of all followed masters.
type heads struct {
	all []follow.Position
	// tries are the feed's failures before the masters were asked: one of them may have been demoted since.
	tries int
}

// heads asks the masters for them. conn is a connection to the master, if there is only one.
func (c *Capture) heads(ctx context.Context, conn redisconn.Conn) (at heads, err error) {
	at.tries = c.feed().failures()
	if conn != nil {
		head, err := follow.Head(ctx, conn)
		at.all = []follow.Position{head}
		return at, err
	}
	h := followerOf(c.store)
	at.all, err = atEach(ctx, h.masters(), func(conn redisconn.Conn) (follow.Position, error) { return follow.Head(ctx, conn) })
	if err != nil {
		h.checkMasters()
	}
	return at, err
}

// atEach calls ask on servers one after the other.
func atEach[T any](ctx context.Context, servers []*redisconn.Server, ask func(redisconn.Conn) (T, error)) (all []T, err error) {
	for _, s := range servers {
		conn, err := s.Borrow(ctx)
		if err != nil {
			return nil, err
		}
		answer, err := ask(conn)
		_ = conn.Close() // it goes back to the pool
		if err != nil {
			return nil, fmt.Errorf("redis %s: %w", s.Address(), err)
		}
		all = append(all, answer)
	}
	return all, nil
}

// batchOf is the batch of a stage.
func (c *Capture) batchOf(st flush.Stage) (*batch, error) {
	if c.batch == nil || c.stage != st.ID {
		return nil, fmt.Errorf("changes %s of %q: %w", st.ID, c.Name(), flush.ErrStaleStage)
	}
	return c.batch, nil
}

// Read yields the present rows of the changed keys, or of all keys.
func (c *Capture) Read(ctx context.Context, st flush.Stage, yield func(flush.Page) error) error {
	b, err := c.batchOf(st)
	if err != nil {
		return err
	}
	f := c.feed()
	if b.debt == 0 && len(b.keys) == 0 {
		return yield(flush.Page{Part: -1, Lane: flush.InOrder, Move: f.move(b, true)})
	}
	conn, err := c.onlyMaster(ctx)
	if err != nil {
		return err
	}
	if conn != nil {
		defer conn.Close() // it goes back to the pool
	}
	if b.debt > 0 {
		return c.readAll(ctx, conn, b, yield)
	}
	return (&changed{Capture: c, conn: conn, batch: b, rows: st.Rows, yield: yield}).read(ctx)
}

// onlyMaster is a connection to the master, if there is only one: then the server that gave a value also answers the question after it.
// nil in a Cluster, where an address is that of one server.
func (c *Capture) onlyMaster(ctx context.Context) (redisconn.Conn, error) {
	if c.store.IsCluster() {
		return nil, nil
	}
	masters, err := c.store.Masters(ctx)
	if err != nil {
		return nil, err
	}
	return masters[0].Borrow(ctx)
}

// readAll yields the rows of all keys.
func (c *Capture) readAll(ctx context.Context, conn redisconn.Conn, b *batch, yield func(flush.Page) error) error {
	f := c.feed()
	st, _, err := c.keys.Stage(ctx, c.stage, "")
	if err != nil {
		return err
	}
	err = c.keys.Read(ctx, st, func(p flush.Page) error {
		if _, err := c.noteSeen(ctx, conn, b); err != nil {
			return err
		}
		p.Lane, p.Move = flush.InOrder, f.move(b, false)
		return yield(p)
	})
	if err != nil {
		return err
	}
	_, b.missed = c.keys.Pass(st)
	return nil
}

// spareRows spares the rows of missing keys from deletion if the database was emptied, or the stream broke, after the batch was taken. It
// first waits until the feed has received the stream up to the point where the keys were found missing.
func (c *Capture) spareRows(ctx context.Context, p *flush.Page, b *batch, heads heads) error {
	gone := func(r row.Record) bool { return r.Gone }
	if !slices.ContainsFunc(p.Records, gone) {
		return nil
	}
	f := c.feed()
	if err := f.awaitReceived(ctx, heads); err != nil {
		return err
	}
	if f.broke(b) || c.options.OnFlush != flushDelete && f.wasEmptied() {
		p.Records = slices.DeleteFunc(p.Records, gone)
	}
	return nil
}

// noteSeen notes the ends of the histories of the masters that values were read from.
func (c *Capture) noteSeen(ctx context.Context, conn redisconn.Conn, b *batch) (heads, error) {
	heads, err := c.heads(ctx, conn)
	if err == nil {
		err = c.feed().noteSeen(b, heads.all)
	}
	return heads, c.fail("read changed keys of", err)
}

// Discard notes that the whole stage is in the database.
func (c *Capture) Discard(_ context.Context, st flush.Stage) error {
	b, err := c.batchOf(st)
	if err != nil {
		return err
	}
	if b.debt > 0 {
		c.feed().pay(b)
	}
	return nil
}

// Wait returns when a key has changed, or a run has something to report. If many keys have changed it waits for more.
func (c *Capture) Wait(ctx context.Context) error {
	f := c.feed()
	if err := f.gather(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(time.Second) // for conditions that depend on the time
	defer tick.Stop()
	for !f.hasWork() {
		select {
		case <-f.changed:
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return ctx.Err()
}

// Backlog counts the changed keys that are not in the database yet. Only the node that follows the stream knows them.
func (c *Capture) Backlog(context.Context) (int64, error) {
	made, ok := c.store.Attachment(attached(c.options.Job, c.Name()))
	if !ok {
		return 0, &flush.UncountedError{Why: "only the node that follows the stream counts them", Elsewhere: true}
	}
	return made.(closer).backlog()
}

// Mark marks keys as changed, so that they are read again. Every follower of the stream receives that.
func (c *Capture) Mark(ctx context.Context, _ string, names []string) error {
	commands := make([]redisconn.Command, len(names))
	for i, name := range names {
		text := strconv.Itoa(c.store.Database()) + " " + name
		if commands[i] = redisconn.Cmd("PUBLISH", rereadChannel, text); c.store.IsCluster() {
			commands[i] = redisconn.Cmd("SET", rereadChannel, text, "EX", 1)
		}
	}
	_, err := c.store.Run(ctx, rereadChannel, func(conn redis.Conn) (any, error) {
		for some := range slices.Chunk(commands, 100) {
			if err := redisconn.SendAll(conn, some...); err != nil {
				return nil, err
			}
			if err := redisconn.AllDone(ctx, conn); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	return c.fail("mark changed keys of", err)
}

// Peek reads up to n rows, whether they have changed or not. It changes nothing.
func (c *Capture) Peek(ctx context.Context, n int) ([]row.Record, error) { return c.keys.Peek(ctx, n) }

// fail adds the action, the key and the remedy to an error.
func (c *Capture) fail(doing string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if !errors.Is(err, follow.ErrRefused) { // which contains its remedy
		err = redisconn.Explain(err)
	}
	return fmt.Errorf("%s %q for job %q: %w", doing, c.Name(), c.options.Job, err)
}
