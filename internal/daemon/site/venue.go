// Package site knows where locks, ledgers and data live: it opens the stores and databases of
// a configuration, and makes one election of those on the masters of a quorum.
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

// Venue is where an election takes place: beside the data, or on the masters of a quorum.
// Each master holds an election of its own, independent of the others.
type Venue struct {
	Config config.Config
	Stores []*redisconn.Store
	Apart  bool // the stores are a quorum's, and the venue closes them
	// Shared, if set, are the connections that the locks of this process share, one a store.
	Shared []*redisconn.Shared
}

// Open prepares the connections; it does not connect. data is the Redis that has the jobs'
// data.
func Open(c config.Config, data *redisconn.Store) (*Venue, error) {
	v := &Venue{Config: c, Stores: []*redisconn.Store{data}}
	masters := c.Redis.Masters()
	if len(masters) == 0 {
		return v, nil
	}
	v.Stores, v.Apart = nil, true
	for i, m := range masters {
		of := c
		of.Redis = m
		store, err := OpenRedis(of)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("redis.quorum[%d]: %w", i, err), v.Close())
		}
		v.Stores = append(v.Stores, store)
	}
	return v, nil
}

// Close drops the connections, if they are the venue's own.
func (v *Venue) Close() error {
	if !v.Apart {
		return nil // its opener closes it
	}
	var problems []error
	for _, s := range v.Stores {
		problems = append(problems, s.Close())
	}
	return errors.Join(problems...)
}

// Share has the locks of this process share connections.
func (v *Venue) Share() {
	for _, s := range v.Stores {
		v.Shared = append(v.Shared, redisconn.NewShared(s))
	}
}

// At is the same place with another lock.
func (v *Venue) At(lockKey string) *Venue {
	other := *v
	other.Config.Election.LockKey = lockKey
	return &other
}

// hosts is the servers' addresses, for messages.
func (v *Venue) hosts() []string {
	names := make([]string, len(v.Stores))
	for i, s := range v.Stores {
		names[i] = s.Host()
	}
	return names
}

// Host is the addresses of the servers, for messages.
func (v *Venue) Host() string { return strings.Join(v.hosts(), ", ") }

// Election is the view of all of it.
func (v *Venue) Election() Election {
	views := make([]Election, len(v.Stores))
	for i, s := range v.Stores {
		views[i] = redislock.NewElection(s, v.Config.Election.LockKey, script.Format(v.Config.Election.LockFormat))
	}
	if !v.Apart {
		return views[0]
	}
	return elections(views)
}

// Ledger remembers the slots beside the data.
func (v *Venue) Ledger(data *redisconn.Store) *redisledger.Ledger {
	return redisledger.NewLedger(data, redisledger.LedgerOptions{
		LockKey: v.Config.Election.LockKey, Format: script.Format(v.Config.Election.LockFormat), ByEpoch: v.Apart,
		Keep: v.Config.History.Keep, MaxAge: v.Config.History.MaxAge,
	})
}

// Spread is what elector.Config.HintSpread should be.
func (v *Venue) Spread() time.Duration { return nodelock.Spread(len(v.Stores)) }

// Lock is this node's view of the lock. It does not connect.
func (v *Venue) Lock(p redislock.Presence) (NodeLock, error) {
	options := LockOptions(v.Config)
	options.Presence = p
	lock, err := nodelock.New(v.Stores, v.Shared, options)
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
