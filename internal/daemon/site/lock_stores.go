package site

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"baton/internal/config"
	"baton/internal/nodelock"
	"baton/internal/redisconn"
	"baton/internal/redisledger"
	"baton/internal/redislock"
	"baton/internal/redislock/script"
)

// LockStores are the Redis that elections take place in: the one of the data, or the masters of a quorum.
// Each master holds an election of its own, independent of the others.
type LockStores struct {
	Config config.Config
	Stores []*redisconn.Store
	Quorum bool // the stores are a quorum's, and Close closes them
	// Shared, if set, are the connections that the locks of this process share, one a store.
	Shared []*redisconn.Shared
}

// Open prepares the connections; it does not connect. data is the Redis that has the jobs'
// data.
func Open(c config.Config, data *redisconn.Store) (*LockStores, error) {
	l := &LockStores{Config: c, Stores: []*redisconn.Store{data}}
	masters := c.Redis.Masters()
	if len(masters) == 0 {
		return l, nil
	}
	l.Stores, l.Quorum = nil, true
	for i, m := range masters {
		of := c
		of.Redis = m
		store, err := OpenRedis(of)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("redis.quorum[%d]: %w", i, err), l.Close())
		}
		l.Stores = append(l.Stores, store)
	}
	return l, nil
}

// Close drops the connections, if they are those of a quorum.
func (l *LockStores) Close() error {
	if !l.Quorum {
		return nil // its opener closes it
	}
	var problems []error
	for _, s := range l.Stores {
		problems = append(problems, s.Close())
	}
	return errors.Join(problems...)
}

// Share has the locks of this process share connections.
func (l *LockStores) Share() {
	for _, s := range l.Stores {
		l.Shared = append(l.Shared, redisconn.NewShared(s))
	}
}

// ForLock is the same for another lock.
func (l *LockStores) ForLock(lockKey string) *LockStores {
	other := *l
	other.Config.Election.LockKey = lockKey
	return &other
}

// hosts is the servers' addresses, for messages.
func (l *LockStores) hosts() []string {
	names := make([]string, len(l.Stores))
	for i, s := range l.Stores {
		names[i] = s.Host()
	}
	return names
}

// Host is the addresses of the servers, for messages.
func (l *LockStores) Host() string { return strings.Join(l.hosts(), ", ") }

// Election is the view of all of it.
func (l *LockStores) Election() Election {
	views := make([]Election, len(l.Stores))
	for i, s := range l.Stores {
		views[i] = redislock.NewElection(s, l.Config.Election.LockKey, script.Format(l.Config.Election.LockFormat))
	}
	if !l.Quorum {
		return views[0]
	}
	return elections(views)
}

// Ledger remembers the slots beside the data.
func (l *LockStores) Ledger(data *redisconn.Store) *redisledger.Ledger {
	return redisledger.NewLedger(data, redisledger.LedgerOptions{
		LockKey: l.Config.Election.LockKey, Format: script.Format(l.Config.Election.LockFormat), ByEpoch: l.Quorum,
		Keep: l.Config.History.Keep, MaxAge: l.Config.History.MaxAge,
	})
}

// Spread is what elector.Config.HintSpread should be.
func (l *LockStores) Spread() time.Duration { return nodelock.Spread(len(l.Stores)) }

// Lock is this node's view of the lock. It does not connect.
func (l *LockStores) Lock(p redislock.Presence) (NodeLock, error) {
	options := LockOptions(l.Config)
	options.Presence = p
	lock, err := nodelock.New(l.Stores, l.Shared, options)
	if err != nil {
		return nil, fmt.Errorf("election.lock_key: %w", err)
	}
	return lock, nil
}

// NodeLock is a lock of a node that others see in the list of nodes.
type NodeLock = nodelock.Lock

// CommandTimeout bounds a command's dealings with Redis.
const CommandTimeout = 5 * time.Second

// WithLock does one command's work on this node's view of the lock.
func WithLock(ctx context.Context, c config.Config, do func(context.Context, Election, NodeLock) error) error {
	store, err := OpenRedis(c)
	if err != nil {
		return err
	}
	at, err := Open(c, store)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	lock, err := at.Lock(redislock.Presence{})
	if err != nil {
		return errors.Join(err, at.Close(), store.Close())
	}
	ctx, cancel := context.WithTimeout(ctx, CommandTimeout)
	defer cancel()
	err = do(ctx, at.Election(), lock)
	lock.Close()
	return errors.Join(err, at.Close(), store.Close())
}
