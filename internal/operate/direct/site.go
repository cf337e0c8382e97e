// Package direct answers questions and carries out orders by direct access to the servers. Redis contains the elections and the ledger of
// the jobs. The databases contain dead letters and fences.
//
// A [Site] serves a command through its own connections ([Open]), or serves the page and the API of a node through the node's connections
// ([Of]). A session is one access to the elections of a configuration. A [View] is one election with its jobs. For most orders the leader
// does the work; the Site stores the order in Redis and waits for the effect:
//
//	stepdown, pause, resume    in the election's keys; the Site reads the election until it shows the effect, or until a time limit
//	run, cancel                in the ledger of the jobs; a leader takes the order, or the Site withdraws the order after [AskFor]
//	verify, backfill           in the ledger, until a leader has carried it out
//	pause_job, resume_job      in the ledger, without a leader
//	replay, drop               in the database, without a leader
//	undelete                   in the database, without a leader, under the fence of the present leader
//	accept                     in the database, without a leader; the leader's next pass reads it
//	reload, test_notify        handled by the node itself
//
// The rules: at most a few requests run at a time on Redis and on the databases, because the leader's work has precedence. A Snapshot is
// bounded before it is passed on ([operate.Bounded]).
//
// The failures:
//
//   - If no node leads, an order to a job returns [operate.ErrNoLeader] and leaves nothing in Redis. A pause and a resume need no leader.
//   - If the leader does not take a run or a cancellation in time, the Site withdraws the order, or finds the leader's answer. If that also
//     fails, the error says that the outcome is unknown.
//   - If the reply of a server is lost, the caller can repeat an order to run a job. The order has an ID, so the second order finds the
//     same run.
//   - If a store or a database does not answer, the answers of the other servers are returned together with an error.
package direct

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/diagnose"
	"baton/internal/flush/source/staging"
	"baton/internal/flush/sql"
	"baton/internal/operate"
	"baton/internal/redisconn"
	"baton/internal/redisledger"
	"baton/internal/redislock"
)

const (
	// redisPlaces and databasePlaces limit the concurrent requests to Redis and to the databases, because the leader's work has precedence.
	redisPlaces    = 8
	databasePlaces = 2
	// recordShown is the maximum length of a record in a list, in characters.
	recordShown = 500
)

// Site answers questions and carries out orders through its own connections, or through the connections of a node.
type Site struct {
	node      Node
	letters   letterPool
	closing   func() error
	redis     chan struct{}
	databases chan struct{}
}

var (
	_ operate.Operator = (*Site)(nil)
	_ operate.Node     = (*Site)(nil)
)

// Node contains the functions of the daemon that the Site is a part of.
type Node struct {
	Log *zap.Logger
	// Access returns the configuration in force, with its connections.
	Access func() Access
	// Own returns the Snapshot of the node, which contains the node's own state even if Redis does not answer. Own is nil outside of a
	// node.
	Own func(ctx context.Context) (diagnose.Snapshot, error)
	// Samples returns samples of how far the flushes were behind.
	Samples func(ctx context.Context, since time.Time) ([]operate.Sample, error)
	// Recent returns the latest runs of every job.
	Recent func(ctx context.Context) (map[string][]operate.Brief, error)
	// Reload makes the node read its configuration again.
	Reload func(ctx context.Context, by string) error
	// TestNotify makes the node send a test notification to one target, or to all targets.
	TestNotify func(ctx context.Context, target, by string) ([]operate.Tested, error)
}

// Access is a configuration, with connections to every Redis that the configuration names.
type Access struct {
	Config     config.Config
	Edition    int              // counts the configurations
	Store      *redisconn.Store // the Redis of the lock
	Stores     site.Stores      // all Redis servers that jobs read
	LockStores *site.LockStores
}

// Of returns a Site that uses a node's connections. Close does not close these connections.
func Of(n Node) *Site {
	return &Site{
		node: n, letters: letterPool{log: n.Log}, closing: func() error { return nil },
		redis: make(chan struct{}, redisPlaces), databases: make(chan struct{}, databasePlaces),
	}
}

// Open returns a Site for the election that the configuration names. The Site opens the source of a job, or a database, only when it needs
// the source or the database. It connects at the first question.
func Open(c config.Config) (*Site, error) {
	store, err := site.OpenRedis(c)
	if err != nil {
		return nil, err
	}
	at, err := site.Open(c, store)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	stores, err := site.OpenStores(c, store)
	if err != nil {
		return nil, errors.Join(err, at.Close(), store.Close())
	}
	a := Access{Config: c, Store: store, Stores: stores, LockStores: at}
	s := Of(Node{Log: zap.NewNop(), Access: func() Access { return a }})
	s.closing = func() error { return errors.Join(at.Close(), stores.Without(nil).Close(), store.Close()) }
	return s, nil
}

// OpenLetters works like [Open], for commands about dead letters. It opens the databases immediately, so that an unreadable data source
// name is reported here.
func OpenLetters(c config.Config) (*Site, error) {
	s, err := Open(c)
	if err != nil {
		return nil, err
	}
	_, leave, err := s.letters.take(c, 0)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	leave()
	return s, nil
}

// Close closes the Site's own connections.
func (s *Site) Close() error {
	s.letters.close()
	return s.closing()
}

// enter waits for a free place in the channel places, which limits the requests at the same time. The caller must call the function free in
// the end.
func enter(ctx context.Context, places chan struct{}) (free func(), err error) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("this node has too many requests at the same time: %w", context.Cause(ctx))
	}
}

// asking waits for a free request slot, and then calls the function do with the election.
func asking[T any](ctx context.Context, s *Site, do func(session) (T, error)) (answer T, err error) {
	free, err := enter(ctx, s.redis)
	if err != nil {
		return answer, err
	}
	defer free()
	answer, err = do(s.session())
	return answer, coded(err)
}

// reading waits for a free request slot, and then calls the function do with the dead letters.
func reading[T any](ctx context.Context, s *Site, do func(*deadLetters) (T, error)) (answer T, err error) {
	free, err := enter(ctx, s.databases)
	if err != nil {
		return answer, err
	}
	defer free()
	d, leave, err := s.takeLetters()
	if err != nil {
		return answer, err
	}
	defer leave()
	answer, err = do(d)
	return answer, coded(err)
}

func (s *Site) takeLetters() (d *deadLetters, leave func(), err error) {
	a := s.node.Access()
	return s.letters.take(a.Config, a.Edition)
}

// coded maps errors of the adapters to errors with the identity, kind and code that commands and API use.
func coded(err error) error {
	for _, same := range []struct{ of, is error }{
		{redislock.ErrNoLeader, operate.ErrNoLeader},
		{sql.ErrNoLetter, operate.ErrNoLetter},
		{sql.ErrManyLetters, operate.ErrManyLetters},
		{sql.ErrNotKept, operate.ErrNoRow},
	} {
		if errors.Is(err, same.of) {
			err = operate.As(err, same.is)
		}
	}
	return operate.WithCode(err)
}

// session is one access to the elections of a configuration.
type session struct {
	Access
	election site.Election
	ledger   *redisledger.Ledger
}

func (s *Site) session() session {
	a := s.node.Access()
	return session{a, a.LockStores.Election(), a.LockStores.Ledger(a.Store)}
}

// The method of returns a session of another election of the same configuration. The lock key "" means the node's own election.
func (l session) of(lockKey string) (session, error) {
	if lockKey == "" || lockKey == l.Config.Election.LockKey {
		return l, nil
	}
	if !slices.Contains(l.Config.LockKeys(), lockKey) {
		return l, fmt.Errorf("%w: no job of the configuration has the lock %q", operate.ErrInvalid, lockKey)
	}
	l.LockStores = l.LockStores.ForLock(lockKey)
	l.Config.Election.LockKey = lockKey
	l.election, l.ledger = l.LockStores.Election(), l.LockStores.Ledger(l.Store)
	return l, nil
}

// views returns the elections that the configuration's jobs run under. The node's own election is the first.
func (l session) views() []View {
	var views []View
	for _, key := range l.Config.LockKeys() {
		views = append(views, l.view(key))
	}
	return views
}

// view returns the election of a lock.
func (l session) view(lockKey string) View {
	at := l.LockStores.ForLock(lockKey)
	ledger := at.Ledger(l.Store)
	return View{
		LockKey: lockKey, Election: at.Election(), Ledger: ledger, Stages: l.stages(ledger),
		Poll: l.Config.Election.PollInterval,
	}
}

func (l session) stages(ledger *redisledger.Ledger) *staging.Stages {
	return staging.NewStages(func() map[string]*redisconn.Store { return l.Stores }, ledger)
}

func (l session) state(ctx context.Context) (redislock.ElectionState, error) {
	return stateOf(ctx, l.election)
}

func stateOf(ctx context.Context, e site.Election) (redislock.ElectionState, error) {
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	return e.State(ctx, 1)
}
