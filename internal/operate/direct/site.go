// Package direct answers and carries out orders over the servers themselves: Redis, where the elections and the ledger of the jobs
// are, and the databases, where dead letters and fences are.
//
// A [Site] serves a command, over connections of its own ([Open]), or the page and the API of a node, over the node's ([Of]). A
// session is one access to the elections of a configuration, and a [View] one election with its jobs. The leader does the work of most
// orders; the Site leaves them in Redis and waits for the effect:
//
//	stepdown, pause, resume    in the election's keys; the Site then reads the election until it shows the effect, or the wait is over
//	run, cancel                in the ledger of the jobs; a leader takes the order, or the Site takes it back after [AskFor]
//	verify, backfill           in the ledger, until a leader has carried it out
//	pause_job, resume_job      in the ledger, without a leader
//	replay, drop               in the database, without a leader
//	reload, test_notify        by the node itself
//
// The rules: Redis and the databases get few questions at a time, since the leader's work goes first. A Snapshot is bounded before
// others see it ([operate.Bounded]).
//
// What fails, and what then:
//
//   - No node leads: [operate.ErrNoLeader] for an order to a job, and no new order stays behind. A pause and a resume need no
//     leader.
//   - The leader does not take a run or a cancellation in time: the Site takes it back, or finds its answer. If that fails too, the
//     error says that the outcome is unknown.
//   - The reply of a server is lost: a run's order has an ID, and giving it again finds the same run.
//   - A store or a database does not answer: the others' answers are returned beside the error.
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
	// redisPlaces bounds concurrent questions to Redis, databasePlaces those to databases: the leader's work goes first.
	redisPlaces    = 8
	databasePlaces = 2
	// recordShown is how much of a long record a list has, in characters.
	recordShown = 500
)

// Site answers and carries out orders over connections of its own, or over those of a node.
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

// Node holds the functions of the daemon that a Site is a part of.
type Node struct {
	Log *zap.Logger
	// Access returns the configuration in force, and its connections.
	Access func() Access
	// Own is the Snapshot of the node, which holds its own state also without Redis; nil without a node.
	Own func(ctx context.Context) (diagnose.Snapshot, error)
	// Samples are how far the flushes were behind.
	Samples func(ctx context.Context, since time.Time) ([]operate.Sample, error)
	// Recent are the latest runs of every job.
	Recent func(ctx context.Context) (map[string][]operate.Brief, error)
	// Reload makes the node read its configuration again.
	Reload func(ctx context.Context, by string) error
	// TestNotify makes the node send a test to one target of its notifications, or to all.
	TestNotify func(ctx context.Context, target, by string) ([]operate.Tested, error)
}

// Access is a configuration, and connections to every Redis that it names.
type Access struct {
	Config     config.Config
	Edition    int              // counts the configurations
	Store      *redisconn.Store // that of the lock
	Stores     site.Stores      // all that jobs read
	LockStores *site.LockStores
}

// Of answers over a node's connections. Close leaves them open.
func Of(n Node) *Site {
	return &Site{
		node: n, letters: letterPool{log: n.Log}, closing: func() error { return nil },
		redis: make(chan struct{}, redisPlaces), databases: make(chan struct{}, databasePlaces),
	}
}

// Open prepares to read the election that the configuration names. It opens a job's source or a database only when it must, and connects
// at the first question.
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

// OpenLetters is Open for commands about dead letters: it opens the databases at once, so that a data source name that cannot be read is
// an error here.
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

// Close drops the connections that are the site's own.
func (s *Site) Close() error {
	s.letters.close()
	return s.closing()
}

// enter waits for a place; the caller must call free.
func enter(ctx context.Context, places chan struct{}) (free func(), err error) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("this node has too many requests at a time: %w", context.Cause(ctx))
	}
}

// asking runs do with the election, once a place is free.
func asking[T any](ctx context.Context, s *Site, do func(session) (T, error)) (answer T, err error) {
	free, err := enter(ctx, s.redis)
	if err != nil {
		return answer, err
	}
	defer free()
	answer, err = do(s.session())
	return answer, coded(err)
}

// reading runs do with the dead letters, once a place is free.
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

// coded gives errors of the adapters the identity, the kind and the code of commands and API.
func coded(err error) error {
	for _, same := range []struct{ of, is error }{
		{redislock.ErrNoLeader, operate.ErrNoLeader},
		{sql.ErrNoLetter, operate.ErrNoLetter},
		{sql.ErrManyLetters, operate.ErrManyLetters},
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

// of is a session of another election of the same configuration; "" is the node's own.
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

// views are the elections that the configuration's jobs run under, the node's own first.
func (l session) views() []View {
	var views []View
	for _, key := range l.Config.LockKeys() {
		views = append(views, l.view(key))
	}
	return views
}

// view is the election of a lock.
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

func (l session) picture(ctx context.Context) (redislock.Picture, error) {
	return picture(ctx, l.election)
}

func picture(ctx context.Context, e site.Election) (redislock.Picture, error) {
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	return e.Picture(ctx, 1)
}
