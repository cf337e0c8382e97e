package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn/headers"
)

// place is one server, and how to log in there.
type place struct {
	network, address string
	encrypted        bool // even if Options.TLS says otherwise
	database         int
	sentinel         bool // a Sentinel, which has users of its own
}

// parseURL reads what Options.URL documents.
func parseURL(raw string) (place, error) {
	const want = "redis url: want redis://host:port/db, rediss://host:port/db or unix:///path/to.sock?db=0"
	u, err := url.Parse(raw)
	if err != nil {
		return place{}, errors.New(want) // not err: it quotes the URL, and there may be a password in it
	}
	p := place{network: "tcp"}
	var database string
	switch u.Scheme {
	case "unix":
		p.network, p.address, database = "unix", u.Path, u.Query().Get("db")
		if u.Host != "" || p.address == "" {
			return place{}, errors.New(want + ": an absolute path, after three slashes")
		}
	case "rediss", "valkeys", "redis", "valkey":
		if u.Host == "" {
			return place{}, errors.New(want)
		}
		port := u.Port()
		if port == "" {
			port = "6379"
		}
		p.address, database = net.JoinHostPort(u.Hostname(), port), strings.Trim(u.Path, "/")
		p.encrypted = strings.HasSuffix(u.Scheme, "s") && u.Scheme != "redis"
	default:
		return place{}, errors.New(want)
	}
	if database == "" {
		return p, nil
	}
	if p.database, err = strconv.Atoi(database); err != nil || p.database < 0 {
		return place{}, errors.New(want) // the rest may be a piece of a password
	}
	return p, nil
}

// connect opens a connection and logs in. It ends with ctx, or after the timeout.
func (s *Store) connect(ctx context.Context, p place) (*wire, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	username, secret := s.opts.Username, s.opts.Password
	if p.sentinel {
		username, secret = s.opts.Sentinel.Username, s.opts.Sentinel.Password
	}
	var password string
	if secret != nil {
		var err error
		if password, err = secret(); err != nil {
			return nil, fmt.Errorf("read the password of %s: %w", p, err)
		}
	}
	encryption, err := s.encryption(p)
	if err != nil {
		return nil, fmt.Errorf("read the certificates for %s: %w", p, err)
	}
	var raw net.Conn
	c, err := redis.DialContext(ctx, p.network, p.address,
		redis.DialContextFunc(func(ctx context.Context, network, address string) (c net.Conn, err error) {
			if raw, err = s.dialNet(ctx, network, address, encryption); err != nil {
				return nil, err
			}
			return headers.Guard(raw, p.String()), nil // the library alone reads through it
		}),
		redis.DialReadTimeout(s.opts.Timeout),
		redis.DialWriteTimeout(s.opts.Timeout),
		redis.DialUsername(username),
		redis.DialPassword(password),
		redis.DialDatabase(p.database),
	)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", p, explainDial(err, p, encryption != nil))
	}
	if err := s.name(ctx, c); err != nil {
		_ = c.Close() // unused
		return nil, fmt.Errorf("connect to %s: %w", p, explainDial(err, p, encryption != nil))
	}
	w := newWire(c, raw, s.opts.Timeout)
	w.server = p.String()
	return w, nil
}

// name shows CLIENT LIST whose connection this is. A server may refuse that: an ACL forbids it, or a proxy does not
// know the command. NOAUTH refuses the connection itself.
func (s *Store) name(ctx context.Context, c redis.Conn) error {
	if s.opts.ClientName == "" {
		return nil
	}
	_, err := redis.DoContext(c, ctx, "CLIENT", "SETNAME", s.opts.ClientName)
	if refusal, refused := errors.AsType[redis.Error](err); refused && !strings.HasPrefix(string(refusal), "NOAUTH") {
		return nil
	}
	return err
}

func (p place) String() string {
	if p.sentinel {
		return "sentinel " + p.address
	}
	return "redis " + p.address
}

// encryption is the TLS configuration for p; nil without TLS.
func (s *Store) encryption(p place) (c *tls.Config, err error) {
	if s.opts.TLS != nil {
		if c, err = s.opts.TLS(); err != nil {
			return nil, err
		}
	}
	switch {
	case p.network == "unix" || c == nil && !p.encrypted:
		return nil, nil
	case c == nil:
		c = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if c.ServerName == "" {
		c = c.Clone()
		c.ServerName, _, err = net.SplitHostPort(p.address)
	}
	return c, err
}

// dialNet makes the TLS handshake: the library's handshake ignores ctx.
func (s *Store) dialNet(ctx context.Context, network, address string, encryption *tls.Config) (net.Conn, error) {
	raw, err := s.opts.Dial(ctx, network, address)
	if err != nil || encryption == nil {
		return raw, err
	}
	c := tls.Client(raw, encryption)
	if err := c.HandshakeContext(ctx); err != nil {
		_ = raw.Close() // unused
		return nil, &handshakeError{err}
	}
	return c, nil
}

// handshakeError says that the TLS handshake has failed.
type handshakeError struct{ err error }

func (e *handshakeError) Error() string { return "TLS handshake: " + e.err.Error() }
func (e *handshakeError) Unwrap() error { return e.err }
