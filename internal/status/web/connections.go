package web

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"go.uber.org/zap"
)

// A new connection does not show its request yet, so the listener cannot reserve connections
// for probes and scrapes. Instead it makes room by closing a connection that waits for its
// client: for a request, or until the client reads the answer. A client that sends its request
// at once, as a probe does, is therefore always served, even among many idle clients. The
// listener never refuses a new client for others of its address: many clients share the
// address of a proxy or of loopback.
const (
	// MaxConnections bounds the file descriptors that clients of one listener can hold: the
	// process needs some for Redis and databases. The limits of requests served at a time
	// are lower, one for each kind.
	MaxConnections = 512
	// MaxIdle bounds the connections that wait for their clients, MaxIdleOfOne those of one address.
	MaxIdle      = 128
	MaxIdleOfOne = 32
)

type connectionLimits struct {
	all, idle, idleOfOne int
	Grace                time.Duration // the time that every client has to send its request
}

// LimitListener accepts connections within limits. Further ones wait in the kernel's queue.
func LimitListener(ln net.Listener, l Limits, log *zap.Logger) net.Listener {
	return &limitedListener{
		Listener: ln, limits: l, log: log, waiting: list.New(), idle: map[netip.Prefix]int{}, room: make(chan struct{},
			1), closed: make(chan struct{}),
	}
}

type limitedListener struct {
	net.Listener
	limits Limits
	log    *zap.Logger
	room   chan struct{} // has a value when a connection has ended
	closed chan struct{}
	once   sync.Once
	full   Throttle

	mu      sync.Mutex
	open    int
	waiting *list.List           // the connections that wait for their clients, the oldest wait first
	idle    map[netip.Prefix]int // the number of waiting connections of each address
	evicted []*limitedConn       // closed, not logged yet
}

// limitedConn is a connection of a limitedListener. A nil one has no limits.
type limitedConn struct {
	net.Conn
	of   *limitedListener
	from netip.Prefix

	// Guarded by of.mu.
	reasons int // counts the waits for the client
	since   time.Time
	place   *list.Element // in of.waiting; nil while the server works
	gone    bool
}

// Accept waits until there is room. It makes room by closing connections of slow clients.
func (l *limitedListener) Accept() (net.Conn, error) {
	for wait := l.makeRoom(); wait > 0; wait = l.makeRoom() {
		l.logEvicted()
		select {
		case <-l.room:
		case <-time.After(wait):
		case <-l.closed:
			return nil, net.ErrClosed
		}
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	_ = noticeVanished(conn, l.limits.Vanished) // fails only on a closed connection, which the server notices anyway
	c := &limitedConn{Conn: conn, of: l, from: NetworkOf(conn.RemoteAddr().String())}
	l.mu.Lock()
	l.open++
	l.mu.Unlock()
	c.wait()
	l.makeRoomOf(c.from)
	l.logEvicted()
	return c, nil
}

func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// makeRoom closes connections until there is room for another one. If it cannot yet, it
// returns the wait before the next attempt.
func (l *limitedListener) makeRoom() (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.waiting.Len() >= l.limits.Connections.idle || l.open >= l.limits.Connections.all {
		var worst *limitedConn // the oldest connection of the address with the most
		for e := l.waiting.Front(); e != nil; e = e.Next() {
			if c := connectionAt(e); worst == nil || l.idle[c.from] > l.idle[worst.from] {
				worst = c
			}
		}
		if worst == nil {
			return l.limits.Connections.Grace
		}
		if wait := l.evict(worst); wait > 0 {
			return wait
		}
	}
	return 0
}

// makeRoomOf closes the oldest connections of an address that has too many.
func (l *limitedListener) makeRoomOf(from netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var next *list.Element
	for e := l.waiting.Front(); e != nil && l.idle[from] > l.limits.Connections.idleOfOne; e = next {
		next = e.Next()
		if c := connectionAt(e); c.from == from && l.evict(c) > 0 {
			return // those after it have waited less
		}
	}
}

func connectionAt(e *list.Element) *limitedConn { return e.Value.(*limitedConn) } //nolint:forcetypeassert // the list has nothing else

// evict closes a waiting connection. Before its grace is over it does not, and returns the
// rest of the grace. The caller holds l.mu.
func (l *limitedListener) evict(c *limitedConn) (wait time.Duration) {
	if wait := l.limits.Connections.Grace - time.Since(c.since); wait > 0 {
		return wait
	}
	l.forget(c)
	_ = c.Conn.Close() // its handler gets an error
	l.evicted = append(l.evicted, c)
	return 0
}

// logEvicted logs the evicted connections without the lock, since logging may be slow.
func (l *limitedListener) logEvicted() {
	l.mu.Lock()
	evicted := l.evicted
	l.evicted = nil
	l.mu.Unlock()
	for _, c := range evicted {
		l.full.Log(func(count int) {
			l.log.Warn("connections were closed to make room: clients hold too many, and neither send a request nor read an answer",
				zap.String("address", c.Conn.RemoteAddr().String()), zap.Int("count", count))
		})
	}
}

// forget stops counting a connection. The caller holds l.mu.
func (l *limitedListener) forget(c *limitedConn) {
	if c.gone {
		return
	}
	c.gone = true
	c.unlist()
	l.open--
	select {
	case l.room <- struct{}{}:
	default:
	}
}

// wait marks the start of a wait for the client.
func (c *limitedConn) wait() {
	if c == nil {
		return
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.reasons++; c.reasons == 1 && !c.gone {
		c.since, c.place = time.Now(), c.of.waiting.PushBack(c)
		c.of.idle[c.from]++
	}
}

// resume ends a wait. It reports whether the connection is still open.
func (c *limitedConn) resume() bool {
	if c == nil {
		return true
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.reasons--; c.reasons == 0 {
		c.unlist()
	}
	return !c.gone
}

// unlist removes a connection from the waiting ones. The caller holds c.of.mu.
func (c *limitedConn) unlist() {
	if c.place == nil {
		return
	}
	c.of.waiting.Remove(c.place)
	c.place = nil
	if c.of.idle[c.from]--; c.of.idle[c.from] == 0 {
		delete(c.of.idle, c.from)
	}
}

func (c *limitedConn) Write(text []byte) (int, error) {
	c.wait()
	defer c.resume()
	return c.Conn.Write(text)
}

func (c *limitedConn) Close() error {
	c.of.mu.Lock()
	c.of.forget(c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

type connectionKey struct{}

// WithConnection stores the connection in a request's context.
func WithConnection(ctx context.Context, conn net.Conn) context.Context {
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, conn)
}

// connectionOf returns the connection of a request; nil if it has no limits.
func connectionOf(r *http.Request) *limitedConn {
	c, _ := r.Context().Value(connectionKey{}).(*limitedConn)
	return c
}

// InTurn counts every connection as waiting for its client, except while its request is served.
func InTurn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := connectionOf(r)
		if !c.resume() {
			return // no answer would reach its client
		}
		defer c.wait()
		next.ServeHTTP(w, r)
	})
}

// NetworkOf returns the network of a remote address: an IPv4 address alone, or the /64 that
// an IPv6 client usually owns. All texts that are no address share the zero prefix.
func NetworkOf(address string) (from netip.Prefix) {
	if at, err := netip.ParseAddrPort(address); err == nil {
		const network = 64
		plain := at.Addr().Unmap().WithZone("")
		from, _ = plain.Prefix(min(plain.BitLen(), network))
	}
	return from
}
