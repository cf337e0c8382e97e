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

// A new connection does not show its request yet, so the listener cannot reserve connections for probes and scrapes. Instead the listener
// makes room by closing a connection that waits for its client: for a request, or for the client to read the answer. A client that sends
// its request immediately, such as a probe, is therefore always served, even among many idle clients. The listener never refuses a new
// client because of other clients with the same address, because many clients share the address of a proxy or of loopback.
const (
	// MaxConnections is the maximum number of connections of one listener. It limits the file descriptors of clients, because the process
	// also needs file descriptors for Redis and databases. The number of concurrent requests has lower limits, one for each kind of
	// request.
	MaxConnections = 512
	// MaxIdle is the maximum number of connections that wait for their clients, and MaxIdleOfOne is the maximum for one address.
	MaxIdle      = 128
	MaxIdleOfOne = 32
)

type connectionLimits struct {
	all, idle, idleOfOne int
	Grace                time.Duration // the minimum time that every client has to send its request
}

// LimitListener returns a listener that accepts connections within the limits l. Further connections wait in the kernel's queue.
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
	room   chan struct{} // receives a value when a connection has ended
	closed chan struct{}
	once   sync.Once
	full   Throttle

	mu      sync.Mutex
	open    int
	waiting *list.List           // the connections that wait for their clients; the connection that has waited longest is the first
	idle    map[netip.Prefix]int // the number of waiting connections of each address
	evicted []*limitedConn       // closed connections that are not logged yet
}

// limitedConn is a connection of a limitedListener. A nil limitedConn has no limits.
type limitedConn struct {
	net.Conn
	of   *limitedListener
	from netip.Prefix

	// The fields below are protected by of.mu.
	reasons int // the number of reasons to wait for the client
	since   time.Time
	place   *list.Element // the position in of.waiting; nil while the server works
	gone    bool
}

// Accept waits until there is room for a connection. It makes room by closing the connections of slow clients.
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
	_ = noticeVanished(conn, l.limits.Vanished) // fails only if the connection is closed, which the server notices in any case
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

// makeRoom closes connections until there is room for another connection. If it cannot close any connection yet, it returns the time to
// wait before the next attempt.
func (l *limitedListener) makeRoom() (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.waiting.Len() >= l.limits.Connections.idle || l.open >= l.limits.Connections.all {
		var worst *limitedConn // the oldest connection of the address with the most waiting connections
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

// makeRoomOf closes the oldest waiting connections of the given address, if this address has too many waiting connections.
func (l *limitedListener) makeRoomOf(from netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var next *list.Element
	for e := l.waiting.Front(); e != nil && l.idle[from] > l.limits.Connections.idleOfOne; e = next {
		next = e.Next()
		if c := connectionAt(e); c.from == from && l.evict(c) > 0 {
			return // the connections behind this one have waited for a shorter time
		}
	}
}

func connectionAt(e *list.Element) *limitedConn { return e.Value.(*limitedConn) } //nolint:forcetypeassert // the list has nothing else

// evict closes a waiting connection. If the connection's grace time is not over, evict does not close the connection and returns the rest
// of that time. The caller holds l.mu.
func (l *limitedListener) evict(c *limitedConn) (wait time.Duration) {
	if wait := l.limits.Connections.Grace - time.Since(c.since); wait > 0 {
		return wait
	}
	l.forget(c)
	_ = c.Conn.Close() // the handler of the connection gets an error
	l.evicted = append(l.evicted, c)
	return 0
}

// logEvicted logs the closed connections. It does not hold the mutex l.mu while it logs, because logging may be slow.
func (l *limitedListener) logEvicted() {
	l.mu.Lock()
	evicted := l.evicted
	l.evicted = nil
	l.mu.Unlock()
	for _, c := range evicted {
		l.full.Log(func(count int) {
			l.log.Warn("connections were closed to make room: clients hold too many connections without sending a request or "+
				"reading an answer",
				zap.String("address", c.Conn.RemoteAddr().String()), zap.Int("count", count))
		})
	}
}

// forget removes a connection from all counts. The caller holds l.mu.
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

// wait records that the connection begins to wait for its client.
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

// resume records that the connection no longer waits for its client. It reports whether the connection is still open.
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

// unlist removes a connection from the list of waiting connections. The caller holds c.of.mu.
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

// connectionOf returns the connection of a request. It returns nil if the connection has no limits.
func connectionOf(r *http.Request) *limitedConn {
	c, _ := r.Context().Value(connectionKey{}).(*limitedConn)
	return c
}

// InTurn returns a handler that serves requests with next. While next runs, the request's connection does not count as waiting for its
// client.
func InTurn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := connectionOf(r)
		if !c.resume() {
			return // no answer would reach the client
		}
		defer c.wait()
		next.ServeHTTP(w, r)
	})
}

// NetworkOf returns the network of a remote address. The network of an IPv4 address is the address alone. The network of an IPv6 address is
// its /64, which one client usually owns. For a text that is no address, NetworkOf returns the zero prefix.
func NetworkOf(address string) (from netip.Prefix) {
	if at, err := netip.ParseAddrPort(address); err == nil {
		const network = 64
		plain := at.Addr().Unmap().WithZone("")
		from, _ = plain.Prefix(min(plain.BitLen(), network))
	}
	return from
}
