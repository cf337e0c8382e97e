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

// LockStores are the Redis servers of the elections: the Redis of the data, or the masters of a quorum. On each master there is a separate
// election, which does not depend on the other masters.
type LockStores struct {
	Config config.Config
	Stores []*redisconn.Store
	Quorum bool // the stores belong to a quorum, and Close closes them
	// Shared, if set, has one entry per store: the connections that the locks of this process share.
	Shared []*redisconn.Shared
}

// Open prepares the connections to the servers of the elections, without connecting. data is the Redis that has the jobs' data.
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

// Close closes the connections to the masters of a quorum. It does not close the Redis of the data, which its caller opened.
func (l *LockStores) Close() error {
	if !l.Quorum {
		return nil // the caller that opened the store closes it
	}
	var problems []error
	for _, s := range l.Stores {
		problems = append(problems, s.Close())
	}
	return errors.Join(problems...)
}

// Share makes all locks of this process use the same connections.
func (l *LockStores) Share() {
	for _, s := range l.Stores {
		l.Shared = append(l.Shared, redisconn.NewShared(s))
	}
}

// ForLock returns the same servers, for the election of another lock.
func (l *LockStores) ForLock(lockKey string) *LockStores {
	other := *l
	other.Config.Election.LockKey = lockKey
	return &other
}

// hosts returns the servers' addresses, for messages.
func (l *LockStores) hosts() []string {
	names := make([]string, len(l.Stores))
	for i, s := range l.Stores {
		names[i] = s.Host()
	}
	return names
}

// Host returns the addresses of the servers in one text, for messages.
func (l *LockStores) Host() string { return strings.Join(l.hosts(), ", ") }

// Election returns one Election that combines the elections in all these stores.
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

// Ledger returns the ledger, which records the slots of jobs in the Redis of the data.
func (l *LockStores) Ledger(data *redisconn.Store) *redisledger.Ledger {
	return redisledger.NewLedger(data, redisledger.LedgerOptions{
		LockKey: l.Config.Election.LockKey, Format: script.Format(l.Config.Election.LockFormat), ByEpoch: l.Quorum,
		Keep: l.Config.History.Keep, MaxAge: l.Config.History.MaxAge,
	})
}

// Spread returns the value for the field HintSpread of elector.Config.
func (l *LockStores) Spread() time.Duration { return nodelock.Spread(len(l.Stores)) }

// Lock returns this node's lock, without connecting.
func (l *LockStores) Lock(p redislock.NodeInfo) (NodeLock, error) {
	options := LockOptions(l.Config)
	options.NodeInfo = p
	lock, err := nodelock.New(l.Stores, l.Shared, options)
	if err != nil {
		return nil, fmt.Errorf("election.lock_key: %w", err)
	}
	return lock, nil
}

// NodeLock is the lock of a node that registers in the list of nodes, where the other nodes see it.
type NodeLock = nodelock.Lock

// CommandTimeout limits the time that all requests of one command to Redis may take together.
const CommandTimeout = 5 * time.Second

// WithLock opens the lock of the configuration, and passes its election and this node's lock to the function do. It is for commands.
func WithLock(ctx context.Context, c config.Config, do func(context.Context, Election, NodeLock) error) error {
	store, err := OpenRedis(c)
	if err != nil {
		return err
	}
	at, err := Open(c, store)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	lock, err := at.Lock(redislock.NodeInfo{})
	if err != nil {
		return errors.Join(err, at.Close(), store.Close())
	}
	ctx, cancel := context.WithTimeout(ctx, CommandTimeout)
	defer cancel()
	err = do(ctx, at.Election(), lock)
	lock.Close()
	return errors.Join(err, at.Close(), store.Close())
}
