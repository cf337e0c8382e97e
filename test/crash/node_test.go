package crash_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"baton/internal/elector"
	"baton/internal/flush"
	"baton/internal/redisstore"
	"baton/internal/sqlstore"
)

const (
	// Small, so that a flush of one cell's data has more than one of each.
	partRows = 20
	pageRows = 10
	// retention has every entry of a stream trimmed that is in the database.
	retention = time.Millisecond
)

// spec says what a node is made of. It crosses to another process as JSON.
type spec struct {
	Driver, DSN, RedisURL string
	LockKey, NodeID, Job  string
	Source                kind
	Table                 string
	Live, Kept, Rows      string // keys in Redis: one that is emptied, one that stays, the pattern of rows
	TTL                   time.Duration
	RemoveEvery           time.Duration // how long flushed ids of hashes may stay in their stage
	KillAt                point         // of a process
}

// stores are the connections of a process to both servers.
type stores struct {
	redis *redisstore.Store
	sink  *sqlstore.Store
}

// openStores connects to nothing yet. observe hears of the steps in the database.
func openStores(s spec, observe func(boundary) error) (*stores, error) {
	r, err := redisstore.Open(redisstore.Options{URL: s.RedisURL, ClientName: s.NodeID})
	if err != nil {
		return nil, err
	}
	sink, err := sqlstore.Open(sqlstore.Options{Name: "main", Driver: s.Driver, DSN: s.DSN, TTL: s.TTL, MaxConns: 8,
		Observe: func(step sqlstore.Step) error { return observe(boundary{"sql", string(step)}) }})
	return &stores{redis: r, sink: sink}, err
}

func (s *stores) close() error { return errors.Join(s.sink.Close(), s.redis.Close()) }

// node is a leader made of the real parts: the lock, one flush job, its source
// and its database.
type node struct {
	lock     *redisstore.Lock
	pipeline *flush.Pipeline
	pending  flush.Source // counts what is left to do
	term     *term
}

// term is a won lock, as a flush sees it.
type term struct {
	lock  *redisstore.Lock
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

// newNode builds a node. It connects to nothing yet. observe hears of the steps of
// the flush and of its source.
func newNode(s spec, st *stores, observe func(boundary) error) (*node, error) {
	n := &node{}
	var err error
	if n.lock, err = redisstore.NewLock(st.redis, redisstore.LockOptions{Key: s.LockKey, NodeID: s.NodeID, TTL: s.TTL}); err != nil {
		return nil, err
	}
	config := flush.Config{
		Job: s.Job, NodeID: s.NodeID, Sink: st.sink,
		NewID:   func() (string, error) { return rand.Text(), nil },
		Retry:   flush.Retry{Wait: 2 * time.Millisecond, MaxWait: 50 * time.Millisecond},
		Observe: func(step flush.Step) error { return observe(boundary{"flush", string(step)}) },
	}
	s.Source.fixture().configure(&config, s, st, func(step string) error { return observe(boundary{"redis", step}) })
	sources, err := config.NewSources(nil)
	if err != nil {
		return nil, err
	}
	n.pending = sources[0]
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
		left, err := n.pending.Backlog(ctx)
		if err != nil || left == 0 {
			return err
		}
	}
}

// persist goes on after errors, as the next slots of a job do, until nothing is
// pending or the leader is told to step down. failures counts the errors.
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

// release gives the lock up.
func (n *node) release(ctx context.Context) error {
	released := n.lock.Release(ctx, n.term.owner, elector.Handover{Event: "released"})
	return errors.Join(released, n.lock.Leave(ctx)) // Leave closes the lock's own connection
}
