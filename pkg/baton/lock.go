package baton

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"regexp"
	"time"

	"baton/internal/heartbeat"
	"baton/internal/redisconn"
	"baton/internal/redislock"
	"baton/internal/redislock/script"
)

// Lock says by which lock to lead, and how. Key and Redis, or Quorum, are required. The zero value
// of everything else is the default, which fits the TTL.
type Lock struct {
	// Key is the lock's key in Redis. What belongs to it is kept beside it, under {Key}:.
	Key string
	// Redis has the lock.
	Redis Redis
	// Quorum are three or more independent servers in the place of Redis. The process that holds the
	// lock on most of them leads. A minority may fail.
	Quorum []Redis

	// TTL is how long the lock lives without a renewal. It is also the longest time from a leader's
	// death to the next term. At least 1 s. Default: 10 s.
	TTL time.Duration
	// Heartbeat is the time between two renewals. Default: 2 s, less with a TTL below 10 s.
	Heartbeat time.Duration
	// Timeout bounds one request. Default: 1 s, less with a TTL below 10 s.
	Timeout time.Duration
	// Poll is the longest that a follower waits between two looks at the lock; it learns of a release
	// sooner. Default: as Heartbeat.
	Poll time.Duration
	// Drain is how long the function has for its end if no renewal is answered: its context ends by
	// that much before the lease becomes uncertain. Default: 2 s, less with a TTL below 10 s.
	Drain time.Duration

	// Node is this process's name in `baton status`, of at most 128 letters, digits, dots, dashes,
	// colons and underscores. Default: the host's name and the number of the process.
	Node string
	// Priority: of the nodes that live, one with the highest leads. 0 to 1000.
	Priority int
	// Observer: this process never leads. OnChange reports the leader to it.
	Observer bool

	// WaitReplicas is how many replicas must have the lock before it counts.
	WaitReplicas int
	// Redisson: the lock has the form of Redisson's RLock, and processes in Java take turns with us.
	Redisson bool
	// Interpreter is for a server that forbids scripts: lua.Interpreter of baton/pkg/baton/lua runs
	// them in this process. Not with Redisson.
	Interpreter Interpreter

	// OnChange is called when something happens: one call at a time, from a goroutine of the election,
	// which waits for it. It must return soon.
	OnChange func(Event)
	// OnOverrun is called when the function has not returned by the end of its lease: another process
	// may lead from then on, so it must end this one. Default: a panic.
	OnOverrun func(reason string)
	// Logger gets what OnChange gets. Default: nothing is logged.
	Logger *slog.Logger
}

// Interpreter runs the lock's scripts in this process.
type Interpreter = script.Interpreter

// Redis is where a lock is: one of URL, Sentinel and Cluster.
type Redis struct {
	// URL is redis://host:port/db, rediss:// with TLS, or unix:///path?db=N. A user and password in it
	// are as Username and Password.
	URL string
	// Sentinel finds the master of a replicated Redis.
	Sentinel *Sentinel
	// Cluster is host:port of some nodes of a Redis Cluster.
	Cluster []string
	// Database is the number of the database behind Sentinels.
	Database int

	Username string
	// Password is called at every connect, so that one that changes needs no restart.
	Password func() (string, error)
	// TLS is called at every connect. Default: the URL decides about TLS.
	TLS func() (*tls.Config, error)
	// Dial opens connections, before TLS, for those who have a way of their own to the server.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Sentinel is the name of a master, and the Sentinels that watch it.
type Sentinel struct {
	Master    string
	Addresses []string // host:port
	// The Sentinels' own user and password.
	Username string
	Password func() (string, error)
}

// ErrInvalid is the error of an invalid Lock. The text names the mistake.
var ErrInvalid = errors.New("baton: invalid lock")

// nodeName is also the pattern that the daemon demands of node.id.
var nodeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`)

const maxPriority = 1000

// withDefaults is l with all that was left out.
func (l Lock) withDefaults() Lock {
	if l.Node == "" {
		if host, err := os.Hostname(); err == nil {
			l.Node = fmt.Sprintf("%s-%d", host, os.Getpid())
		}
	}
	l.TTL = cmp.Or(l.TTL, 10*time.Second)
	l.Heartbeat = cmp.Or(l.Heartbeat, min(2*time.Second, l.TTL/5))
	l.Timeout = cmp.Or(l.Timeout, min(time.Second, l.TTL/10))
	l.Poll = cmp.Or(l.Poll, l.Heartbeat)
	l.Drain = cmp.Or(l.Drain, min(2*time.Second, l.TTL/5))
	if l.OnChange == nil {
		l.OnChange = func(Event) {}
	}
	if l.OnOverrun == nil {
		l.OnOverrun = func(reason string) { panic("baton: " + reason) }
	}
	if l.Logger == nil {
		l.Logger = slog.New(slog.DiscardHandler)
	}
	return l
}

func (l Lock) timing() heartbeat.Timing {
	return heartbeat.Timing{
		TTL: l.TTL, Interval: l.Heartbeat, Timeout: l.Timeout, Margin: heartbeat.DefaultMargin(l.TTL), Drain: l.Drain,
	}
}

// check returns the mistake in a Lock that withDefaults has completed, or nil.
func (l Lock) check() error {
	problem := func(format string, args ...any) error {
		return fmt.Errorf("%w: %w", ErrInvalid, fmt.Errorf(format, args...))
	}
	_, several := l.servers()
	switch {
	case l.Key == "":
		return problem("Key is required")
	case !nodeName.MatchString(l.Node):
		return problem("Node %q: want letters, digits, dots, dashes, colons and underscores, at most 128", l.Node)
	case l.Priority < 0 || l.Priority > maxPriority:
		return problem("Priority %d: want 0 to %d", l.Priority, maxPriority)
	case l.TTL < time.Second:
		return problem("TTL %v: a lease needs at least 1s", l.TTL)
	case l.WaitReplicas < 0:
		return problem("WaitReplicas %d: want 0 or more", l.WaitReplicas)
	case l.Redisson && l.Interpreter != nil:
		return problem("Redisson needs scripts of the server: remove Interpreter")
	case several && !l.Redis.isZero():
		return problem("Redis and Quorum are both set: keep one of them")
	case several && len(l.Quorum) < 3:
		return problem("Quorum has %d servers: want 3 or more", len(l.Quorum))
	}
	if err := l.timing().Validate(); err != nil {
		return problem("%w", err)
	}
	return nil
}

func (r Redis) isZero() bool { return r.URL == "" && r.Sentinel == nil && len(r.Cluster) == 0 }

// servers are where the lock is.
func (l Lock) servers() (all []Redis, several bool) {
	if len(l.Quorum) > 0 {
		return l.Quorum, true
	}
	return []Redis{l.Redis}, false
}

// open prepares the connections to r; it does not connect.
func (r Redis) open(l Lock) (*redisconn.Store, error) {
	o := redisconn.Options{
		URL: r.URL, Cluster: r.Cluster, Database: r.Database, Username: r.Username, Password: r.Password, TLS: r.TLS, Dial: r.Dial,
		ClientName: "baton:" + l.Node, Timeout: min(5*time.Second, l.TTL/2),
	}
	if u, err := url.Parse(r.URL); err == nil && u.User != nil {
		password, set := u.User.Password()
		if set {
			o.Password = func() (string, error) { return password, nil }
		}
		o.Username, u.User = u.User.Username(), nil
		o.URL = u.String()
	}
	if s := r.Sentinel; s != nil {
		o.Sentinel = &redisconn.SentinelOptions{Master: s.Master, Addresses: s.Addresses, Username: s.Username, Password: s.Password}
	}
	store, err := redisconn.Open(o)
	if err != nil {
		return nil, fmt.Errorf("%w: Redis: %w", ErrInvalid, err)
	}
	return store, nil
}

// options are this node's view of the lock.
func (l Lock) options() redislock.LockOptions {
	return redislock.LockOptions{
		Key: l.Key, NodeID: l.Node, TTL: l.TTL, Format: l.format(), Interpreter: l.Interpreter, WaitReplicas: l.WaitReplicas,
		Presence: redislock.Presence{Priority: l.Priority, Observer: l.Observer},
	}
}

func (l Lock) format() script.Format {
	if l.Redisson {
		return script.Redisson
	}
	return script.String
}
