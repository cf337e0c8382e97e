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

// Lock configures the lock of an election, and how this process leads. Key and either Redis or Quorum are required. In every other field,
// the zero value means a default value that fits the TTL.
type Lock struct {
	// Key is the lock's key in Redis. The other data of the lock is stored beside it, in keys that begin with {Key}:.
	Key string
	// Redis is the Redis that contains the lock.
	Redis Redis
	// Quorum is a list of three or more independent servers that are used instead of the field Redis. The process that holds the lock on
	// most of the servers leads. A minority of the servers may fail.
	Quorum []Redis

	// TTL is how long the lock is valid without a renewal. It is also the maximum time from a leader's death to the next term. The minimum
	// is 1 s. Default: 10 s.
	TTL time.Duration
	// Heartbeat is the interval between two renewals. Default: 2 s, or less if the TTL is below 10 s.
	Heartbeat time.Duration
	// Timeout is the time limit of one request. Default: 1 s, or less if the TTL is below 10 s.
	Timeout time.Duration
	// Poll is the maximum interval between two checks of the lock by a follower. A follower learns of a release earlier. Default: the value
	// of Heartbeat.
	Poll time.Duration
	// Drain is the time that the leader's function has to return if no renewal is answered. The context of the function ends that long
	// before the lease becomes uncertain. Default: 2 s, or less if the TTL is below 10 s.
	Drain time.Duration

	// Node is the name of this process in `baton status`. It consists of at most 128 letters, digits, dots, dashes, colons and underscores.
	// Default: the host's name and the process id.
	Node string
	// Priority decides which node leads: a live node with the highest priority. It is between 0 and 1000.
	Priority int
	// Observer means that this process never leads. OnChange still reports which node leads.
	Observer bool

	// WaitReplicas is the number of replicas that must have stored the lock before the lock counts as taken.
	WaitReplicas int
	// Redisson means that the lock has the format of Redisson's RLock, so that this process and processes in Java exclude each other.
	Redisson bool
	// Interpreter is needed if the server forbids scripts. lua.Interpreter of baton/pkg/baton/lua runs the scripts in this process instead.
	// An Interpreter cannot be used together with Redisson.
	Interpreter Interpreter

	// OnChange is called for each event of the election. The calls come one at a time, from a goroutine of the election that waits for the
	// call, so OnChange must return soon.
	OnChange func(Event)
	// OnOverrun is called if the leader's function has not returned when the lease becomes uncertain. Another process may lead soon after
	// that time, so OnOverrun must end this process immediately. Default: a panic.
	OnOverrun func(reason string)
	// Logger logs the events that OnChange gets. Default: nothing is logged.
	Logger *slog.Logger
}

// Interpreter runs the scripts of the lock in this process.
type Interpreter = script.Interpreter

// Redis says where a lock is. Exactly one of URL, Sentinel and Cluster must be set.
type Redis struct {
	// URL is redis://host:port/db, rediss:// with TLS, or unix:///path?db=N. A user and a password in the URL have the same effect as
	// Username and Password.
	URL string
	// Sentinel finds the master of a replicated Redis.
	Sentinel *Sentinel
	// Cluster contains the addresses host:port of some nodes of a Redis Cluster.
	Cluster []string
	// Database is the number of the database behind Sentinels.
	Database int

	Username string
	// Password is called for every connection, so a changed password needs no restart.
	Password func() (string, error)
	// TLS is called for every connection. Default: the URL decides whether TLS is used.
	TLS func() (*tls.Config, error)
	// Dial opens connections, before TLS. It is for programs that reach the server in a special way.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Sentinel contains the name of a master, and the Sentinels that watch the master.
type Sentinel struct {
	Master    string
	Addresses []string // host:port
	// Username and Password are the Sentinels' own user and password.
	Username string
	Password func() (string, error)
}

// ErrInvalid means that a Lock is invalid. The text of the error names the mistake.
var ErrInvalid = errors.New("baton: invalid lock")

// nodeName matches a valid node name. The daemon uses the same pattern for node.id.
var nodeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`)

const maxPriority = 1000

// withDefaults returns l with the default values of all fields that are not set.
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

// check returns an error that describes the mistake in a Lock, or nil if there is no mistake. The Lock must have been completed by
// withDefaults.
func (l Lock) check() error {
	problem := func(format string, args ...any) error {
		return fmt.Errorf("%w: %w", ErrInvalid, fmt.Errorf(format, args...))
	}
	_, several := l.servers()
	switch {
	case l.Key == "":
		return problem("Key is required")
	case !nodeName.MatchString(l.Node):
		return problem("Node %q: use letters, digits, dots, dashes, colons and underscores, at most 128 characters", l.Node)
	case l.Priority < 0 || l.Priority > maxPriority:
		return problem("Priority %d: must be from 0 to %d", l.Priority, maxPriority)
	case l.TTL < time.Second:
		return problem("TTL %v: a lease needs at least 1s", l.TTL)
	case l.WaitReplicas < 0:
		return problem("WaitReplicas %d: must be 0 or more", l.WaitReplicas)
	case l.Redisson && l.Interpreter != nil:
		return problem("Redisson needs scripts of the server: remove Interpreter")
	case several && !l.Redis.isZero():
		return problem("Redis and Quorum are both set: keep one of them")
	case several && len(l.Quorum) < 3:
		return problem("Quorum has %d servers: it needs 3 or more", len(l.Quorum))
	}
	if err := l.timing().Validate(); err != nil {
		return problem("%w", err)
	}
	return nil
}

func (r Redis) isZero() bool { return r.URL == "" && r.Sentinel == nil && len(r.Cluster) == 0 }

// servers returns the servers of the lock. The result several is true for a quorum.
func (l Lock) servers() (all []Redis, several bool) {
	if len(l.Quorum) > 0 {
		return l.Quorum, true
	}
	return []Redis{l.Redis}, false
}

// open prepares the connections to the server r, but does not connect yet.
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

// options returns the options of package redislock for this node and the lock.
func (l Lock) options() redislock.LockOptions {
	return redislock.LockOptions{
		Key: l.Key, NodeID: l.Node, TTL: l.TTL, Format: l.format(), Interpreter: l.Interpreter, WaitReplicas: l.WaitReplicas,
		NodeInfo: redislock.NodeInfo{Priority: l.Priority, Observer: l.Observer},
	}
}

func (l Lock) format() script.Format {
	if l.Redisson {
		return script.Redisson
	}
	return script.String
}
