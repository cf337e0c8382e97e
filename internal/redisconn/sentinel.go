package redisconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

// SentinelOptions are the name of the master and the Sentinels that watch it.
type SentinelOptions struct {
	Master    string   // the name of the master in the Sentinels
	Addresses []string // host:port of each Sentinel
	// Username and Password are for the Sentinels. Sentinels do not get the credentials of Redis.
	Username string
	Password func() (string, error)
}

// sentinels lists the Sentinels that know the master. They are asked for the master at every dial, because an earlier answer may be
// outdated.
type sentinels struct {
	store     *Store
	master    string
	addresses []string
	preferred atomic.Int64 // the index of the Sentinel to ask first
}

func (s *Store) openSentinel(o SentinelOptions) error {
	if o.Master == "" || len(o.Addresses) == 0 {
		return errors.New("redis sentinel: set the name of the master, and host:port of each sentinel")
	}
	for _, a := range o.Addresses {
		if _, _, err := net.SplitHostPort(a); err != nil {
			return fmt.Errorf("redis sentinel %q: the address must have the form host:port", a)
		}
	}
	all := &sentinels{store: s, master: o.Master, addresses: o.Addresses}
	s.host = fmt.Sprintf("%s (sentinels %s)", o.Master, strings.Join(o.Addresses, ", "))
	s.single = newServer(s.host, all.dial, testRole)
	return nil
}

// dial connects to the master. It refuses a server that is no master although a Sentinel names the server. In this case the Sentinel's
// view is outdated, or a failover has just begun.
func (s *sentinels) dial(ctx context.Context) (*wire, error) {
	address, from, err := s.find(ctx)
	if err != nil {
		return nil, err
	}
	c, err := s.store.connect(ctx, serverAddress{network: "tcp", address: address, database: s.store.opts.Database})
	if err != nil {
		s.preferred.Store(int64(from + 1)) // another Sentinel may be up to date
		return nil, fmt.Errorf("%w (master %q as sentinel %s knows it)", err, s.master, s.addresses[from])
	}
	role, err := roleOf(ctx, c)
	switch {
	case err != nil:
		err = fmt.Errorf("ask redis %s for its role: %w", address, Explain(err))
	case role != "master":
		s.preferred.Store(int64(from + 1))
		err = fmt.Errorf("sentinel %s calls redis %s the master of %q, but this server says %q: a failover is in progress (%w)",
			s.addresses[from], address, s.master, role, ErrRefused)
	}
	if err != nil {
		_ = c.Close() // unused
		return nil, err
	}
	return c, nil
}

var errNoSuchMaster = errors.New("knows no such master")

// find asks the Sentinels one after the other. It begins with the Sentinel that answered last.
func (s *sentinels) find(ctx context.Context) (address string, from int, err error) {
	first := int(s.preferred.Load()) % len(s.addresses)
	order := slices.Concat(s.addresses[first:], s.addresses[:first])
	address, at, err := firstOf(ctx, order, s.store.patience(), s.ask)
	if err == nil {
		from = (first + at) % len(s.addresses)
		s.preferred.Store(int64(from))
		return address, from, nil
	}
	everybody := strings.Join(s.addresses, ", ")
	if unknown := strings.Count(err.Error(), errNoSuchMaster.Error()); unknown == len(s.addresses) {
		return "", 0, fmt.Errorf("sentinels at %s know no master called %q: check redis.sentinel.master", everybody, s.master)
	}
	return "", 0, fmt.Errorf("no sentinel answers with the address of master %q: %w", s.master, err)
}

func (s *sentinels) ask(ctx context.Context, sentinel string) (string, error) {
	at := serverAddress{network: "tcp", address: sentinel, sentinel: true}
	c, err := s.store.connect(ctx, at)
	if err != nil {
		return "", err
	}
	defer c.Close() // such connections are rare
	reply, err := redis.Strings(redis.DoContext(c, ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.master))
	switch {
	case errors.Is(err, redis.ErrNil):
		return "", fmt.Errorf("%s %w", at, errNoSuchMaster)
	case err != nil:
		return "", fmt.Errorf("ask %s: %w", at, explainDial(err, at, false))
	case len(reply) != 2:
		return "", fmt.Errorf("%s answers %q instead of an address", at, reply)
	}
	return net.JoinHostPort(reply[0], reply[1]), nil
}

func roleOf(ctx context.Context, c redis.Conn) (string, error) {
	reply, err := redis.Values(redis.DoContext(c, ctx, "ROLE"))
	if err != nil {
		return "", err
	}
	var role string
	_, err = redis.Scan(reply, &role)
	return role, err
}

// testRole checks that the server of an idle connection is still a master. An operator may have demoted it, and then it would serve old
// data.
func testRole(ctx context.Context, c redis.Conn, idle time.Duration) error {
	if idle < time.Second {
		return nil
	}
	role, err := roleOf(ctx, c)
	if err == nil && role != "master" {
		err = errUnfit
	}
	return err
}
