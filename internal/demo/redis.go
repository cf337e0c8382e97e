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
	// clockStep is how often the embedded server's clock is moved on.
	clockStep = 10 * time.Millisecond
	// longestStep is well below the margin between the end of a term and the end of its lease.
	longestStep = 50 * time.Millisecond
	// lockIndex is the key on which the nodes note their lock, beside the locks of other elections.
	lockIndex = "baton:locks"
)

// server is the Redis of one run. All keys of the run contain the prefix.
type server struct {
	config config.Redis // of the application and the auditor
	nodes  config.Redis // of the nodes: by the relay, where there is one
	relay  *relay       // nil: the demo cannot cut the nodes off
	what   string       // for people; never a password
	prefix string
	stop   func()
}

// openServer starts a server for the run, or examines the one that the options name, and
// claims the prefix there.
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

// relayNodes puts a relay between the nodes and the server. With TLS there is no relay: a certificate is for the server's own name.
func (s *server) relayNodes() error {
	s.nodes = s.config
	u, err := url.Parse(s.config.URL)
	if err != nil {
		return errors.New("the URL of Redis cannot be read") // the error may hold a password
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

// runClock advances the embedded server's clock with ours: its keys do not expire without that.
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
			// A key also pays for the part of the step before it was set: a long step on a busy machine would end a lease early, and two
			// nodes would lead.
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

// dial opens a connection for the caller alone.
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
		return fmt.Errorf("redis %s has a key %q already: start the demo again, with another --seed", s.config.Address(), s.prefix)
	}
	if err != nil {
		return fmt.Errorf("write to Redis %s: %w", s.config.Address(), err)
	}
	return nil
}

// cleanUp removes every key of the run, in small steps: the Redis may hold much other data.
func (s *server) cleanUp(ctx context.Context) error {
	c, err := s.dial(ctx)
	if err != nil {
		return fmt.Errorf("the keys *%s* stay: %w", s.prefix, err)
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
		return fmt.Errorf("take %s off the list of locks of Redis %s: %w", s.lockKey(), s.config.Address(), err)
	}
	return nil
}
