package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"baton/internal/config"
	"baton/internal/elector"
	"baton/internal/heartbeat"
	"baton/internal/quorum"
	"baton/internal/redisconn"
	"baton/internal/redisledger"
	"baton/internal/redislock"
	"baton/internal/redislock/script"
)

// venue is where an election takes place: beside the data, or on the masters of a
// quorum, each of which holds an election of its own that the others know nothing of.
type venue struct {
	config config.Config
	stores []*redisconn.Store
	apart  bool // they are a quorum's, and ours to close
	// shared, if set, are the connections that the locks of this process share, one a store.
	shared []*redisconn.Shared
}

// openVenue prepares the connections; it does not connect. data is where the jobs'
// data is.
func openVenue(c config.Config, data *redisconn.Store) (*venue, error) {
	v := &venue{config: c, stores: []*redisconn.Store{data}}
	masters := c.Redis.Masters()
	if len(masters) == 0 {
		return v, nil
	}
	v.stores, v.apart = nil, true
	for i, m := range masters {
		of := c
		of.Redis = m
		store, err := openRedis(of)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("redis.quorum[%d]: %w", i, err), v.close())
		}
		v.stores = append(v.stores, store)
	}
	return v, nil
}

func (v *venue) close() error {
	if !v.apart {
		return nil // whoever has opened it closes it
	}
	var problems []error
	for _, s := range v.stores {
		problems = append(problems, s.Close())
	}
	return errors.Join(problems...)
}

// share has the locks of this process share connections.
func (v *venue) share() {
	for _, s := range v.stores {
		v.shared = append(v.shared, redisconn.NewShared(s))
	}
}

// at is the same place with another lock.
func (v *venue) at(lockKey string) *venue {
	other := *v
	other.config.Election.LockKey = lockKey
	return &other
}

// hosts is the servers' addresses, for messages.
func (v *venue) hosts() []string {
	names := make([]string, len(v.stores))
	for i, s := range v.stores {
		names[i] = s.Host()
	}
	return names
}

func (v *venue) host() string { return strings.Join(v.hosts(), ", ") }

// election is the view of all of it.
func (v *venue) election() election {
	views := make([]election, len(v.stores))
	for i, s := range v.stores {
		views[i] = redislock.NewElection(s, v.config.Election.LockKey, script.Format(v.config.Election.LockFormat))
	}
	if !v.apart {
		return views[0]
	}
	return elections(views)
}

// ledger remembers the slots beside the data.
func (v *venue) ledger(data *redisconn.Store) *redisledger.Ledger {
	return redisledger.NewLedger(data, redisledger.LedgerOptions{
		LockKey: v.config.Election.LockKey, Format: script.Format(v.config.Election.LockFormat), ByEpoch: v.apart,
		Keep: v.config.History.Keep, MaxAge: v.config.History.MaxAge,
	})
}

// spread is what elector.Config.HintSpread should be.
func (v *venue) spread() time.Duration {
	if v.apart {
		return 5 * time.Millisecond // some times what it takes to ask all masters
	}
	return 0
}

// lock is this node's view of the lock. It does not connect.
func (v *venue) lock(p redislock.Presence) (nodeLock, error) {
	options := lockOptions(v.config)
	options.Presence = p
	parts := make([]*redislock.Lock, len(v.stores))
	locks := make([]elector.Lock, len(v.stores))
	for i, s := range v.stores {
		if v.shared != nil {
			options.Shared = v.shared[i]
		}
		part, err := redislock.NewLock(s, options)
		if err != nil {
			return nil, fmt.Errorf("election.lock_key: %w", err)
		}
		parts[i], locks[i] = part, part
	}
	if !v.apart {
		return parts[0], nil
	}
	whole, err := quorum.New(locks, quorum.Options{
		TTL: v.config.Election.TTL, Margin: heartbeat.DefaultMargin(v.config.Election.TTL), NewOwner: newID, Names: v.hosts(),
		Clock: func() time.Duration { return time.Duration(heartbeat.Boottime()) },
	})
	return quorumLock{whole, parts}, err
}

// nodeLock is a lock of a node that others see in the list of nodes.
type nodeLock interface {
	elector.Lock
	// Present says what else to tell of the node, from the next occasion on.
	Present(p redislock.Presence)
	// Leave takes the node off the list.
	Leave(ctx context.Context) error
	// Close drops the connections. The lock, if held, stays held.
	Close()
}

// quorumLock is a lock made of locks that each list the node.
type quorumLock struct {
	*quorum.Lock
	parts []*redislock.Lock
}

// Leave asks all masters. One that is away forgets the node by itself later.
func (l quorumLock) Leave(ctx context.Context) error {
	l.Settle(ctx)
	// Settling may have taken all of the time, for one master that hangs.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), slowest)
	defer cancel()
	problems := l.each(func(part *redislock.Lock) error { return part.Leave(ctx) })
	if 2*len(problems) < len(l.parts) {
		return nil
	}
	return errors.Join(problems...)
}

// Present tells all masters.
func (l quorumLock) Present(p redislock.Presence) {
	for _, part := range l.parts {
		part.Present(p)
	}
}

func (l quorumLock) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), slowest)
	defer cancel()
	l.Settle(ctx)
	_ = l.each(func(part *redislock.Lock) error { part.Close(); return nil }) // it returns none
}

// each does something with all parts at once: one that hangs delays no other. It
// returns the errors.
func (l quorumLock) each(do func(*redislock.Lock) error) []error {
	results := make(chan error, len(l.parts))
	for _, part := range l.parts {
		go func() { results <- do(part) }()
	}
	var problems []error
	for range l.parts {
		if err := <-results; err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}

// commandTimeout bounds a command's dealings with Redis.
const commandTimeout = 5 * time.Second

// withLock does one command's work on this node's view of the lock.
func withLock(ctx context.Context, c config.Config, do func(context.Context, election, nodeLock) error) error {
	store, err := openRedis(c)
	if err != nil {
		return err
	}
	at, err := openVenue(c, store)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	lock, err := at.lock(redislock.Presence{})
	if err != nil {
		return errors.Join(err, at.close(), store.Close())
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	err = do(ctx, at.election(), lock)
	lock.Close()
	return errors.Join(err, at.close(), store.Close())
}
