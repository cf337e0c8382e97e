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

// serverAddress is the address of one server and the credentials for it.
type serverAddress struct {
	network, address string
	encrypted        bool // TLS is used even if Options.TLS says otherwise
	database         int
	sentinel         bool // the server is a Sentinel, which has its own users
}

// parseURL reads a URL in the form that Options.URL describes.
func parseURL(raw string) (serverAddress, error) {
	const want = "redis url: write redis://host:port/db, rediss://host:port/db or unix:///path/to.sock?db=0"
	u, err := url.Parse(raw)
	if err != nil {
		return serverAddress{}, errors.New(want) // err is not returned, because it quotes the URL, which may contain a password
	}
	p := serverAddress{network: "tcp"}
	var database string
	switch u.Scheme {
	case "unix":
		p.network, p.address, database = "unix", u.Path, u.Query().Get("db")
		if u.Host != "" || p.address == "" {
			return serverAddress{}, errors.New(want + "; the path of a socket is absolute and follows three slashes")
		}
	case "rediss", "valkeys", "redis", "valkey":
		if u.Host == "" {
			return serverAddress{}, errors.New(want)
		}
		port := u.Port()
		if port == "" {
			port = "6379"
		}
		p.address, database = net.JoinHostPort(u.Hostname(), port), strings.Trim(u.Path, "/")
		p.encrypted = strings.HasSuffix(u.Scheme, "s") && u.Scheme != "redis"
	default:
		return serverAddress{}, errors.New(want)
	}
	if database == "" {
		return p, nil
	}
	if p.database, err = strconv.Atoi(database); err != nil || p.database < 0 {
		return serverAddress{}, errors.New(want) // the rest may be a piece of a password
	}
	return p, nil
}

// connect opens a connection and logs in. It fails when ctx ends, or after the timeout.
func (s *Store) connect(ctx context.Context, p serverAddress) (*wire, error) {
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
			return headers.Guard(raw, p.String()), nil // only the library reads through the guard
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

// name sets the connection's name, which CLIENT LIST shows. It ignores a refusal, because an ACL may forbid the command, or a proxy
// may not know the command. Only the refusal NOAUTH is an error, because it concerns the whole connection.
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

func (p serverAddress) String() string {
	if p.sentinel {
		return "sentinel " + p.address
	}
	return "redis " + p.address
}

// encryption returns the TLS configuration for a server, or nil if the connection to this server does not use TLS.
func (s *Store) encryption(p serverAddress) (c *tls.Config, err error) {
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

// dialNet opens a connection. It makes the TLS handshake itself, because the library's handshake ignores ctx.
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

// handshakeError means that the TLS handshake has failed.
type handshakeError struct{ err error }

func (e *handshakeError) Error() string { return "TLS handshake: " + e.err.Error() }
func (e *handshakeError) Unwrap() error { return e.err }
