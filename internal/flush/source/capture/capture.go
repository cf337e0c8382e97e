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

// Keys finds the keys of a job and reads the rows of their values. A source.Scan implements it.
type Keys interface {
	flush.Source // Read reads all keys
	flush.Peeker
	// Pass returns the reason why the last Read may have missed keys, or nil.
	Pass(s flush.Stage) (generation int64, missed error)
	Finds(inputs []string) error
	StillMissing(ctx context.Context, records []row.Record) ([]row.Record, error)
	// Matches reports whether a key belongs to the job. It keeps no reference to the key's memory.
	Matches(key string) bool
	// HasMembers reports whether each member of a key is a row.
	HasMembers() bool
	// Named returns the record of a key with only those inputs that follow from the key's name.
	Named(key string) row.Record
	// Missing returns which of the records do not exist at the server of the connection c. If c is nil, it asks the servers of the keys.
	Missing(ctx context.Context, c redisconn.Conn, records []row.Record) ([]row.Record, error)
	// ReadKeys reads some of the keys. The record of a missing key is Gone. If each member of a key is a row, a missing key has no record.
	ReadKeys(ctx context.Context, c redisconn.Conn, keys []string, yield func(flush.Page) error) error
}

// Options describe a capture.
type Options struct {
	Job    string
	Prefix string // the common beginning of all keys
	// OnFlush decides what happens after a command has emptied the database: "stop", "pass" or "delete". Default: "stop".
	OnFlush string
	// MemoryBudget is the maximum memory, in bytes, of changed keys that are not flushed yet. Default 32 MiB.
	MemoryBudget int
}

// These are the values of OnFlush.
const (
	flushStop, flushPass, flushDelete = "stop", "pass", "delete"
)

const defaultMemoryBudget = 32 << 20

// Capture is a flush.Source of the changed keys. Its position is in the database, and every page moves this position. A Capture follows the
// replication stream from the first Stage until Release, or until the store is closed, also between the job's runs. All captures of the
// same job and key share one feed.
type Capture struct {
	keys    Keys
	store   *redisconn.Store
	options Options
	reread  reread // the reason for a pass, which the next stage records
	stage   string // the id of the stage that batch belongs to
	batch   *batch
}

// New checks the options and does not connect.
func New(store *redisconn.Store, keys Keys, o Options) (*Capture, error) {
	o.OnFlush = cmp.Or(o.OnFlush, flushStop)
	if choices := []string{flushStop, flushPass, flushDelete}; !slices.Contains(choices, o.OnFlush) {
		return nil, fmt.Errorf("on_flush: %q is unknown: use stop, pass or delete", o.OnFlush)
	}
	if o.MemoryBudget <= 0 {
		o.MemoryBudget = defaultMemoryBudget
	}
	return &Capture{keys: keys, store: store, options: o}, nil
}

// Name returns the pattern of the keys.
func (c *Capture) Name() string { return c.keys.Name() }

// attached returns the name under which a job's feed is attached to the store.
func attached(job, key string) string { return "capture " + job + " " + key }

// Release stops following the streams for a job. The next Stage starts again.
func Release(store *redisconn.Store, job, key string) error { return store.Detach(attached(job, key)) }

// closer makes a feed closable by its store.
type closer struct{ *feed }

func (c closer) Close() error { c.close(); return nil }

// feed returns the job's feed. It creates the feed if necessary.
func (c *Capture) feed() *feed {
	h := followerOf(c.store)
	made := c.store.Attached(attached(c.options.Job, c.Name()), func() io.Closer {
		return closer{newFeed(feedOptions{follower: h, prefix: c.options.Prefix, match: c.keys.Matches, budget: c.options.MemoryBudget})}
	})
	return made.(closer).feed
}

// Stage takes the changes that were made before its call. If the feed may have missed changes, Stage begins a pass over all keys, and the
// note of the stage gives the reason. If a command has emptied the database and on_flush is "stop", Stage returns flush.ErrEmptied.
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
	// If Resumed is true, the run continues with another stage after this one. After a pass, the next stage contains the changes that were
	// made during the pass. A feed that is cut off from the stream cannot know whether there were changes.
	resumed := b.passesOwed > 0 || b.cutOff
	return flush.Stage{ID: newID, Size: int64(len(b.keys)), Resumed: resumed, Note: note, Expected: !b.alarming}, true, nil
}

// catchUp waits until the feed has received all changes that were made before the call. It does not wait if the stage only moves the
// position.
func (c *Capture) catchUp(ctx context.Context, f *feed) error {
	if f.isCutOff() {
		return nil // the stage only moves the position
	}
	heads, err := c.heads(ctx, nil)
	if err != nil {
		return err
	}
	return f.catchUp(ctx, heads)
}

// heads contains the end of the replication history of each master that is followed.
type heads struct {
	all []follow.Position
	// tries is the number of the feed's failures before the masters were asked. If the number is higher later, a master may have been
	// demoted since then.
	tries int
}

// heads asks the masters for the ends of their replication histories. If conn is not nil, heads asks only the master of this connection.
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

// atEach calls the function ask for one server after the other, and returns all answers.
func atEach[T any](ctx context.Context, servers []*redisconn.Server, ask func(redisconn.Conn) (T, error)) (all []T, err error) {
	for _, s := range servers {
		conn, err := s.Borrow(ctx)
		if err != nil {
			return nil, err
		}
		answer, err := ask(conn)
		_ = conn.Close() // returns it to the pool
		if err != nil {
			return nil, fmt.Errorf("redis %s: %w", s.Address(), err)
		}
		all = append(all, answer)
	}
	return all, nil
}

// batchOf returns the batch of a stage.
func (c *Capture) batchOf(st flush.Stage) (*batch, error) {
	if c.batch == nil || c.stage != st.ID {
		return nil, fmt.Errorf("changes %s of %q: %w", st.ID, c.Name(), flush.ErrStaleStage)
	}
	return c.batch, nil
}

// Read yields the present rows of the changed keys. In a pass it yields the rows of all keys.
func (c *Capture) Read(ctx context.Context, st flush.Stage, yield func(flush.Page) error) error {
	b, err := c.batchOf(st)
	if err != nil {
		return err
	}
	f := c.feed()
	if b.passesOwed == 0 && len(b.keys) == 0 {
		return yield(flush.Page{Part: -1, Lane: flush.InOrder, Move: f.move(b, true)})
	}
	conn, err := c.onlyMaster(ctx)
	if err != nil {
		return err
	}
	if conn != nil {
		defer conn.Close() // returns it to the pool
	}
	if b.passesOwed > 0 {
		return c.readAll(ctx, conn, b, yield)
	}
	return (&changed{Capture: c, conn: conn, batch: b, rows: st.Rows, yield: yield}).read(ctx)
}

// onlyMaster returns a connection to the master if there is only one. With this connection, baton reads a value and afterwards the end of
// the history from the same server. In a Cluster onlyMaster returns nil, because a connection may lead to one of several servers.
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
	// The last page has no row. It covers the keys that were not found: a failover may lose the commands that removed them.
	if _, err := c.noteSeen(ctx, conn, b); err != nil {
		return err
	}
	if err := yield(flush.Page{Part: -1, Lane: flush.InOrder, Move: f.move(b, false)}); err != nil {
		return err
	}
	_, b.missed = c.keys.Pass(st)
	return nil
}

// spareRows removes the records of missing keys from the page, so that their rows are not deleted. It does so if the database was emptied,
// or if the stream broke after the batch was taken. It first waits until the feed has received the stream up to the time when the keys
// were missing.
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

// noteSeen records the ends of the masters' histories after values were read from the masters.
func (c *Capture) noteSeen(ctx context.Context, conn redisconn.Conn, b *batch) (heads, error) {
	heads, err := c.heads(ctx, conn)
	if err == nil {
		err = c.feed().noteSeen(b, heads.all)
	}
	return heads, c.fail("read changed keys of", err)
}

// Discard records that the whole stage is in the database.
func (c *Capture) Discard(_ context.Context, st flush.Stage) error {
	b, err := c.batchOf(st)
	if err != nil {
		return err
	}
	if b.passesOwed > 0 {
		c.feed().pay(b)
	}
	return nil
}

// Wait returns when a key has changed, or a run has something to report. If the last batch had many keys, Wait first pauses, so that the
// next batch also has many keys.
func (c *Capture) Wait(ctx context.Context) error {
	f := c.feed()
	if err := f.gather(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(time.Second) // checks the conditions that depend on the time
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

// Backlog counts the changed keys that are not in the database yet. Only the node that follows the stream can count them.
func (c *Capture) Backlog(context.Context) (int64, error) {
	made, ok := c.store.Attachment(attached(c.options.Job, c.Name()))
	if !ok {
		return 0, &flush.UncountedError{Why: "only the node that follows the replication stream can count the changes", Elsewhere: true}
	}
	return made.(closer).backlog()
}

// Mark makes every node that follows the stream regard these keys as changed, so that the keys are read again.
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

// Peek reads up to n rows, no matter whether they have changed. It changes nothing.
func (c *Capture) Peek(ctx context.Context, n int) ([]row.Record, error) { return c.keys.Peek(ctx, n) }

// fail adds the action, the key and the remedy to an error.
func (c *Capture) fail(doing string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if !errors.Is(err, follow.ErrRefused) { // the text of ErrRefused contains its own remedy
		err = redisconn.Explain(err)
	}
	return fmt.Errorf("%s %q for job %q: %w", doing, c.Name(), c.options.Job, err)
}
