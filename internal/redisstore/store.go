// Package redisstore is the adapter to Redis: connections, the lock, the slot
// ledger and the flush sources. Every script is a file of its own beside the
// code that runs it.
package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Options say which Redis, and as whom. One of URL, Sentinel and Cluster says where
// the servers are. Passwords and certificates come from functions: no URL with a
// secret in it is ever printed, and a rotated secret needs no restart.
type Options struct {
	// URL is redis://host:port/db, rediss:// with TLS, or unix:///path?db=N;
	// valkey:// and valkeys:// mean the same as redis:// and rediss://.
	URL string
	// Sentinel finds the master of a replicated Redis.
	Sentinel *SentinelOptions
	// Cluster is host:port of some nodes of a Redis Cluster; they tell the others.
	Cluster []string

	Username string
	// Password is asked for at every dial. nil: none.
	Password func() (string, error)
	// Database is the number of the database behind Sentinels. A URL has its own, a Cluster only 0.
	Database int
	// TLS is asked for at every dial. nil, or an answer of nil, leaves the URL to say
	// whether there is any.
	TLS        func() (*tls.Config, error)
	ClientName string
	// Timeout bounds a dial, and every command that has no deadline of its own. Default 5 s.
	Timeout time.Duration
}

// Store is one Redis deployment. Its methods may be called by many goroutines.
type Store struct {
	opts    Options
	host    string   // for messages: never a credential
	single  *server  // one server, or whichever is the master now; nil for a Cluster
	cluster *cluster // nil for anything else
}

// Open checks the options. It does not connect: Redis may come later.
func Open(o Options) (*Store, error) {
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	s := &Store{opts: o}
	switch {
	case (o.URL != "") == (o.Sentinel != nil || len(o.Cluster) > 0), o.Sentinel != nil && len(o.Cluster) > 0:
		return nil, errors.New("redis: want one of a url, sentinels and a cluster")
	case o.Sentinel != nil:
		return s, s.openSentinel(*o.Sentinel)
	case len(o.Cluster) > 0:
		return s, s.openCluster(o.Cluster)
	}
	where, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	s.host = where.address
	s.single = newServer(where.address, func(ctx context.Context) (redis.Conn, error) { return s.connect(ctx, where) }, ping)
	return s, nil
}

// Host is where the server is, or who knows it, for messages.
func (s *Store) Host() string { return s.host }

// Dial opens a connection of its own, outside the pools, to the server that has key.
func (s *Store) Dial(ctx context.Context, key string) (redis.Conn, error) {
	if s.cluster != nil {
		return s.cluster.route(ctx, key, (*server).connect)
	}
	return s.single.connect(ctx)
}

// Conn borrows a pooled connection to the server that has key; close it to give it back.
func (s *Store) Conn(ctx context.Context, key string) (redis.Conn, error) {
	if s.cluster != nil {
		return s.cluster.route(ctx, key, (*server).borrow)
	}
	return s.single.borrow(ctx)
}

// run borrows a connection to the server that has key for one command and explains
// its error.
func (s *Store) run(ctx context.Context, key string, command func(redis.Conn) (any, error)) (any, error) {
	conn, err := s.Conn(ctx, key)
	if err != nil {
		return nil, err
	}
	defer conn.Close() // it goes back to the pool
	reply, err := command(conn)
	return reply, explain(err)
}

// Close drops the pooled connections.
func (s *Store) Close() error {
	if s.cluster != nil {
		return s.cluster.close()
	}
	return s.single.close()
}
