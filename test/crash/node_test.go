package crash_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"baton/internal/elector"
	"baton/internal/flush"
	"baton/internal/flush/flushtest"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/open"
	"baton/internal/flush/sql/sqltest"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/redislock"
)

const (
	// These sizes are small, so that a flush of one cell's data has more than one part and more than one page.
	partRows = 20
	pageRows = 10
	// retention is so short that every entry of a stream is trimmed when it is in the database.
	retention = time.Millisecond
)

// spec describes the parts of a node. It is sent to another process as JSON.
type spec struct {
	Driver, DSN          string
	RedisURL, LockURL    string // the URL of the data, and the URL of the lock
	LockKey, NodeID, Job string
	Source               kind
	Table                string
	Live, Kept, Rows     string // keys in Redis: a key that is emptied, a key that stays, the pattern of rows
	TTL                  time.Duration
	RemoveEvery          time.Duration // the maximum time that flushed ids of hashes stay in their stage
	KillAt               point         // of a process
}

// stores are the connections of a process to all servers.
type stores struct {
	redis  *redisconn.Store // the store of the sources
	beside *redisconn.Store // the store of the sources that count the pending changes
	lock   *redisconn.Store
	sink   *sql.Store
}

// openStores does not connect yet. observe is called with the steps in the database and the steps of the sources in Redis.
func openStores(s spec, observe func(boundary) error) (*stores, error) {
	o := redisconn.Options{URL: s.RedisURL, ClientName: s.NodeID}
	beside, err := redisconn.Open(o)
	if err != nil {
		return nil, err
	}
	lock, err := redisconn.Open(redisconn.Options{URL: s.LockURL, ClientName: s.NodeID})
	if err != nil {
		return nil, err
	}
	o.Dial = redistest.Dial(func(step string) error { return observe(boundary{"redis", inSets(step)}) })
	r, err := redisconn.Open(o)
	if err != nil {
		return nil, err
	}
	d, err := open.Dialect(s.Driver)
	if err != nil {
		return nil, err
	}
	d = sqltest.Observed(d, func(step sqltest.Step) error { return observe(boundary{"sql", string(step)}) })
	sink, err := sql.New(d, sql.Options{Name: "main", DSN: s.DSN, TTL: s.TTL, MaxConns: 8})
	return &stores{redis: r, beside: beside, lock: lock, sink: sink}, err
}

func (s *stores) close() error {
	return errors.Join(s.sink.Close(), s.redis.Close(), s.beside.Close(), s.lock.Close())
}

// node is a leader made of the real parts: the lock, one flush job, its source
// and its database.
type node struct {
	lock     *redislock.Lock
	pipeline *flush.Pipeline
	pending  []flush.Source // they count the pending changes
	term     *term
}

// term is a won lock in the form that a flush uses.
type term struct {
	lock  *redislock.Lock
	owner string
	epoch int64
}

func (t *term) Owner() string { return t.owner }
func (t *term) Epoch() int64  { return t.epoch }

func (t *term) Raise(ctx context.Context, floor int64) (int64, error) {
	epoch, err := t.lock.Raise(ctx, t.owner, floor)
	if err == nil {
		t.epoch = epoch
	}
	return epoch, err
}

// newNode makes a node. It does not connect yet. observe is called with the steps of the flush.
func newNode(s spec, st *stores, observe func(boundary) error) (*node, error) {
	n := &node{}
	var err error
	if n.lock, err = redislock.NewLock(st.lock, redislock.LockOptions{Key: s.LockKey, NodeID: s.NodeID, TTL: s.TTL}); err != nil {
		return nil, err
	}
	config := flush.Config{
		Job: s.Job, NodeID: s.NodeID, Sink: st.sink,
		NewID: func() (string, error) { return rand.Text(), nil },
		Retry: flush.Retry{Wait: 2 * time.Millisecond, MaxWait: 50 * time.Millisecond, GiveWay: s.Source.giveWay()},
	}
	if err := s.Source.configure(&config, s, st.beside); err != nil {
		return nil, err
	}
	if n.pending, err = config.NewSources(nil); err != nil {
		return nil, err
	}
	if err := s.Source.configure(&config, s, st.redis); err != nil {
		return nil, err
	}
	config = flushtest.Observed(config, func(step flushtest.Step) error { return observe(boundary{"flush", string(step)}) })
	n.pipeline, err = flush.New(config)
	return n, err
}

// lead wins the lock, which must be free.
func (n *node) lead(ctx context.Context) error {
	owner := rand.Text()
	answer, err := n.lock.Acquire(ctx, elector.Candidate{Owner: owner})
	if err != nil {
		return err
	}
	if answer.Outcome != elector.Won {
		return fmt.Errorf("the lock is not free: held by %q", answer.Holder)
	}
	n.term = &term{lock: n.lock, owner: owner, epoch: answer.Epoch}
	return nil
}

// flush runs the job until nothing is pending.
func (n *node) flush(ctx context.Context) error {
	for {
		if _, err := n.pipeline.Run(ctx, n.term); err != nil {
			return err
		}
		left, err := flush.Backlog(ctx, n.pending)
		if _, uncounted := errors.AsType[*flush.UncountedError](err); uncounted {
			return nil // a source that does not follow the stream knows of no further changes
		}
		if err != nil || left == 0 {
			return err
		}
	}
}

// persist continues after errors, like the next slots of a job, until nothing is pending or the leader is ordered to step down. failures
// is the number of errors.
func (n *node) persist(ctx context.Context) (failures int, err error) {
	for {
		err := n.flush(ctx)
		if err == nil || errors.Is(err, flush.ErrFenced) {
			return failures, err
		}
		failures++
		select {
		case <-ctx.Done():
			return failures, fmt.Errorf("%d runs failed, the last with: %w", failures, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// release ends the term and releases the lock.
func (n *node) release(ctx context.Context) error {
	ended := n.pipeline.Release()
	released := n.lock.Release(ctx, n.term.owner, elector.Handover{Event: "released"})
	return errors.Join(ended, released, n.lock.Leave(ctx)) // Leave closes the lock's own connection
}
