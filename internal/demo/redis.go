package demo

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"

	"baton/internal/config"
)

const (
	redisTimeout = 3 * time.Second
	// clockStep is the time between two steps of the embedded server's clock.
	clockStep = 10 * time.Millisecond
	// longestStep limits a step of that clock. It is much less than the margin between the end of a term and the end of its lease.
	longestStep = 50 * time.Millisecond
	// lockIndex is a key that contains the locks of the nodes and the locks of other elections.
	lockIndex = "baton:locks"
)

// server is the Redis that one run of the demo uses. All keys of the run contain the prefix.
type server struct {
	config config.Redis // configuration of the application and the auditor
	nodes  config.Redis // configuration of the nodes; the URL is the relay's if there is a relay
	relay  *relay       // if nil, the demo cannot separate the nodes from Redis
	what   string       // description for people; never contains a password
	prefix string
	stop   func()
}

// openServer starts a server for the run, or checks the server that the options name. It makes sure that no other demo uses the prefix on
// that server.
func openServer(ctx context.Context, o Options, sc scene, dir, prefix string) (*server, error) {
	s := &server{prefix: prefix, stop: func() {}}
	switch {
	case o.Redis != "":
		s.config.URL = o.Redis
		s.what = s.config.Address()
	case sc.streams:
		addr, stop, err := startPrivate(ctx, dir)
		if err != nil {
			return nil, err
		}
		s.stop = stop
		s.config.URL = "redis://" + addr + "/0"
		s.what = "a redis-server of this run, " + s.config.URL
	default:
		m := miniredis.NewMiniRedis()
		if err := m.StartAddr("127.0.0.1:0"); err != nil {
			return nil, fmt.Errorf("start the embedded Redis: %w", err)
		}
		s.stop = runClock(m)
		s.config.URL = "redis://" + m.Addr() + "/0"
		s.what = "embedded, " + s.config.URL
	}
	err := s.relayNodes()
	if err == nil {
		err = s.claim(ctx)
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// relayNodes puts a relay between the nodes and the server. With TLS there is no relay, because a certificate is valid only for the
// server's own name.
func (s *server) relayNodes() error {
	s.nodes = s.config
	u, err := url.Parse(s.config.URL)
	if err != nil {
		return errors.New("the URL of Redis cannot be read") // the parser's error may contain a password
	}
	if u.Scheme != "redis" {
		return nil
	}
	target := u.Host
	if u.Port() == "" {
		target = net.JoinHostPort(u.Hostname(), "6379")
	}
	if s.relay, err = newRelay(target); err != nil {
		return err
	}
	stop := s.stop
	s.stop = func() {
		s.relay.close()
		stop()
	}
	u.Host = s.relay.addr()
	s.nodes.URL = u.String()
	return nil
}

// runClock advances the clock of the embedded server together with the real clock. Otherwise the server's keys would not expire.
func runClock(m *miniredis.Miniredis) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(clockStep)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			now := time.Now()
			// A step of the clock also shortens the life of a key that was set during the step. On a busy machine steps are late. Without
			// the maximum, such a step would be long and end a lease early, and two nodes would lead.
			m.FastForward(min(now.Sub(last), longestStep))
			last = now
		}
	}()
	return func() {
		cancel()
		<-done
		m.Close()
	}
}

func (s *server) lockKey() string { return s.prefix + ":lock" }

// dial opens a new connection that only the caller uses.
func (s *server) dial(ctx context.Context) (redis.Conn, error) {
	c, err := redis.DialURLContext(ctx, s.config.URL,
		redis.DialConnectTimeout(redisTimeout), redis.DialReadTimeout(redisTimeout), redis.DialWriteTimeout(redisTimeout),
		redis.DialClientName("baton-demo"), redis.DialTLSConfig(&tls.Config{MinVersion: tls.VersionTLS12}))
	if err != nil {
		return nil, fmt.Errorf("connect to Redis %s: %w", s.config.Address(), err)
	}
	return c, nil
}

// claim makes sure that no other demo uses the prefix.
func (s *server) claim(ctx context.Context) error {
	c, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	whole, cancel := uninterrupted(ctx)
	defer cancel()
	_, err = redis.String(redis.DoContext(c, whole, "SET", s.prefix, "a run of baton demo", "NX"))
	if errors.Is(err, redis.ErrNil) {
		return fmt.Errorf("redis %s already has a key %q: start the demo again with another --seed", s.config.Address(), s.prefix)
	}
	if err != nil {
		return fmt.Errorf("write to Redis %s: %w", s.config.Address(), err)
	}
	return nil
}

// cleanUp removes every key of the run, in small steps, because the Redis may contain much other data.
func (s *server) cleanUp(ctx context.Context) error {
	c, err := s.dial(ctx)
	if err != nil {
		return fmt.Errorf("the keys *%s* were not removed: %w", s.prefix, err)
	}
	defer c.Close()
	for cursor := "0"; ; {
		reply, err := redis.Values(redis.DoContext(c, ctx, "SCAN", cursor, "MATCH", "*"+s.prefix+"*", "COUNT", 1000))
		var keys []any
		if err == nil {
			_, err = redis.Scan(reply, &cursor, &keys)
		}
		if err == nil && len(keys) > 0 {
			_, err = redis.DoContext(c, ctx, "UNLINK", keys...)
		}
		if err != nil {
			return fmt.Errorf("remove the keys *%s* from Redis %s: %w", s.prefix, s.config.Address(), err)
		}
		if cursor == "0" {
			break
		}
	}
	if _, err := redis.DoContext(c, ctx, "ZREM", lockIndex, s.lockKey()); err != nil {
		return fmt.Errorf("remove %s from the list of locks of Redis %s: %w", s.lockKey(), s.config.Address(), err)
	}
	return nil
}
