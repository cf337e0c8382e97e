// Package redisconn connects to Redis: to one server, to the master behind Sentinels, or to every master of a Cluster. It explains errors
// to operators and knows nothing of the stored data.
//
// A [Store] is one deployment. It finds the [Server] of a key: always the same server, the present master by the Sentinels, or on a
// Cluster the master of the key's slot. A Server is an address, or the Sentinels' answer, and has two pools of connections. Each kind
// of connection has its use:
//
//	Conn, Run      a pooled connection for commands; Close gives it back
//	Block          a connection of the second pool, for a blocking command that is repeated until it is done
//	Dial           a connection of the caller's own, outside the pools
//	Shared         one connection for all locks of the process: simultaneous commands share a round trip
//	Socket         a socket after the login, for the replication stream (package follow)
//
// What fails, and what then:
//
//   - An error reply: the command was not done, and the explained error matches [ErrRefused]. Any other error leaves the outcome
//     unknown. No method repeats such a command.
//   - A reply shows that the server is not the one to write to (READONLY, LOADING and others), or a connection breaks: all pooled
//     connections to that server are closed after their present use, and the next dial finds the master again.
//   - MOVED, ASK or TRYAGAIN on a Cluster: the command was not done. It is sent again to the right node, and MOVED corrects the map of
//     slots. Commands of a transaction are not sent again: the caller gets the refusal.
//   - A Sentinel names a server that is no master: the dial fails, and the next dial begins with another Sentinel.
//   - A reply is late: on a pooled connection the command fails, and the connection is closed. On Shared only the request of that reply
//     fails.
//   - A server, Sentinel or node hangs: dials and commands end with ctx or after the timeout. Until then, requests go to the other
//     Sentinels or nodes.
package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Options are the address of a Redis deployment, the credentials, and other settings. Exactly one of URL, Sentinel and Cluster must
// be set. Functions return the passwords and certificates. So a URL needs no secret, and a changed secret needs no restart.
type Options struct {
	// URL is redis://host:port/db, rediss:// for TLS, or unix:///path?db=N. valkey:// and valkeys:// mean the same as redis:// and
	// rediss://.
	URL string
	// Sentinel finds the master of a replicated Redis.
	Sentinel *SentinelOptions
	// Cluster has the host:port of some nodes of a Redis Cluster. baton finds the other nodes by asking these.
	Cluster []string

	Username string
	// Password is called at every dial. nil means that there is no password.
	Password func() (string, error)
	// Database is the number of the database behind Sentinels. A URL contains the number, and a Cluster has only database 0.
	Database int
	// TLS is called at every dial. If TLS is nil or returns nil, the URL decides whether to use TLS.
	TLS        func() (*tls.Config, error)
	ClientName string
	// Timeout is the time limit of a dial, and of every command that has no deadline of its own. Default: 5 s.
	Timeout time.Duration
	// Dial opens a connection, before TLS begins. Default: a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Store is one Redis deployment. It is safe for concurrent use.
type Store struct {
	opts    Options
	host    string   // for messages: never a credential
	single  *Server  // one server, or the current master behind Sentinels; nil for a Cluster
	cluster *cluster // nil for anything else
	number  int      // the number of the database

	mu       sync.Mutex
	attached map[string]io.Closer // by name
	closed   bool
}

// Open checks the options. It does not connect, because Redis may be unavailable.
func Open(o Options) (*Store, error) {
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	s := &Store{opts: o, number: o.Database}
	switch {
	case (o.URL != "") == (o.Sentinel != nil || len(o.Cluster) > 0), o.Sentinel != nil && len(o.Cluster) > 0:
		return nil, errors.New("redis: set exactly one of a url, sentinels or a cluster")
	case o.Sentinel != nil:
		return s, s.openSentinel(*o.Sentinel)
	case len(o.Cluster) > 0:
		return s, s.openCluster(o.Cluster)
	}
	where, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	s.host, s.number = where.address, where.database
	s.single = newServer(where.address, func(ctx context.Context) (*wire, error) { return s.connect(ctx, where) }, ping)
	return s, nil
}

// Host returns the address of the server, or of the Sentinels or nodes, for messages.
func (s *Store) Host() string { return s.host }

// Dial opens a new connection, outside the pools, to the server that has key.
func (s *Store) Dial(ctx context.Context, key string) (Conn, error) {
	return s.reach(ctx, key, (*Server).Connect)
}

// Conn borrows a pooled connection to the server that has the key. The caller closes the connection to give it back.
func (s *Store) Conn(ctx context.Context, key string) (Conn, error) {
	return s.reach(ctx, key, (*Server).Borrow)
}

// reach calls the function connect with the server that has the key. The function connect opens or borrows a connection.
func (s *Store) reach(ctx context.Context, key string, connect func(*Server, context.Context) (Conn, error)) (Conn, error) {
	if s.cluster != nil {
		return s.cluster.route(ctx, key, connect)
	}
	return connect(s.single, ctx)
}

// Run borrows a connection to the server that has key, runs one command, and explains its error.
func (s *Store) Run(ctx context.Context, key string, command func(redis.Conn) (any, error)) (any, error) {
	conn, err := s.Conn(ctx, key)
	if err != nil {
		return nil, err
	}
	defer conn.Close() // it goes back to the pool
	reply, err := command(conn)
	return reply, Explain(err)
}

// Database returns the number of the Redis database.
func (s *Store) Database() int { return s.number }

// Close closes the pooled connections and all attached objects (see [Store.Attached]).
func (s *Store) Close() error {
	err := s.detachAll()
	if s.cluster != nil {
		s.cluster.close()
	} else {
		s.single.close()
	}
	return err
}

// IsCluster reports whether keys are on several servers, by their slots.
func (s *Store) IsCluster() bool { return s.cluster != nil }

// FailsOver reports whether a replica takes over by automatic failover.
func (s *Store) FailsOver() bool { return s.cluster != nil || s.opts.Sentinel != nil }

// Timeout returns the time limit of a dial, and of every command that has no deadline of its own.
func (s *Store) Timeout() time.Duration { return s.opts.Timeout }

// Master returns the server that had key when baton last looked. A Cluster may have moved the key since.
func (s *Store) Master(ctx context.Context, key string) (*Server, error) {
	if s.cluster != nil {
		return s.cluster.owner(ctx, Slot(key))
	}
	return s.single, nil
}

// Masters returns the servers that have keys. On a Cluster it asks the nodes, and fails if a slot has no master.
func (s *Store) Masters(ctx context.Context) ([]*Server, error) {
	if s.cluster != nil {
		return s.cluster.owning(ctx)
	}
	return []*Server{s.single}, nil
}
