// Package redisstore is the adapter to Redis: connections, the lock, the slot
// ledger and the flush sources. Every script is a file of its own beside the
// code that runs it.
package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Options say which Redis, and as whom. URL is redis://host:port/db; a password
// comes from Password, so that no URL with a secret in it is ever printed.
type Options struct {
	URL      string
	Username string
	// Password is asked for at every dial, so that a rotated secret needs no restart.
	Password   func() (string, error)
	ClientName string
	// Timeout bounds a dial, and every command that has no deadline of its own. Default 5 s.
	Timeout time.Duration
}

// Store is one Redis deployment. Its methods may be called by many goroutines.
type Store struct {
	opts Options
	host string // for messages: never a credential
	pool *redis.Pool
}

// Open checks the options. It does not connect: Redis may come later.
func Open(o Options) (*Store, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || (u.Scheme != "redis" && u.Scheme != "rediss") {
		return nil, errors.New("redis url: want redis://host:port/db or rediss://host:port/db")
	}
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	s := &Store{opts: o, host: u.Host}
	s.pool = &redis.Pool{
		MaxIdle:     4,
		IdleTimeout: time.Minute,
		DialContext: s.dial,
		TestOnBorrowContext: func(ctx context.Context, c redis.Conn, idleSince time.Time) error {
			if time.Since(idleSince) < 10*time.Second {
				return nil
			}
			_, err := redis.DoContext(c, ctx, "PING")
			return err
		},
	}
	return s, nil
}

// Host is the server's address, for messages.
func (s *Store) Host() string { return s.host }

// Dial opens a connection of its own, outside the pool, to the server that has key.
func (s *Store) Dial(ctx context.Context, _ string) (redis.Conn, error) { return s.dial(ctx) }

func (s *Store) dial(ctx context.Context) (redis.Conn, error) {
	stop := func() bool { return true }
	opts := []redis.DialOption{
		redis.DialContextFunc(func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{Timeout: s.opts.Timeout}).DialContext(ctx, network, addr)
			if err == nil {
				// The library's TLS handshake does not know ctx; this makes it end.
				stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
			}
			return conn, err
		}),
		redis.DialTLSHandshakeTimeout(s.opts.Timeout),
		redis.DialReadTimeout(s.opts.Timeout),
		redis.DialWriteTimeout(s.opts.Timeout),
		redis.DialClientName(s.opts.ClientName),
		redis.DialTLSConfig(&tls.Config{MinVersion: tls.VersionTLS12}),
	}
	if s.opts.Password != nil {
		pw, err := s.opts.Password()
		if err != nil {
			return nil, fmt.Errorf("read the password of redis %s: %w", s.host, err)
		}
		opts = append(opts, redis.DialUsername(s.opts.Username), redis.DialPassword(pw))
	}
	c, err := redis.DialURLContext(ctx, s.opts.URL, opts...)
	if !stop() {
		err = ctx.Err() // whatever it led to
	}
	if err != nil {
		return nil, fmt.Errorf("connect to redis %s: %w", s.host, explain(err))
	}
	return c, nil
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

// Conn borrows a pooled connection to the server that has key; close it to give it back.
func (s *Store) Conn(ctx context.Context, _ string) (redis.Conn, error) {
	c, err := s.pool.GetContext(ctx)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Close drops the pooled connections.
func (s *Store) Close() error { return s.pool.Close() }
