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

// What a connection will ask for is not known before it has: so no place can be kept for
// probes and scrapes. Instead a connection on which the server waits for its client, for a
// request or for an answer to be read, can always be closed to make room. Whoever sends a
// request at once, as a probe does, is served however many others send none. A new client
// is never refused for those of its address: behind a proxy, or on loopback, are many.
const (
	// MaxConnections bounds the file descriptors that the clients of one listener can take
	// from a process that needs them for Redis and databases. What is served at a time is
	// bounded by its kind, and less.
	MaxConnections = 512
	// MaxIdle are those that wait for their clients, maxIdleOfOne those of one address.
	MaxIdle      = 128
	MaxIdleOfOne = 32
)

type connectionLimits struct {
	all, idle, idleOfOne int
	Grace                time.Duration // what any client gets to send its request, however many there are
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
	waiting *list.List           // the connections that wait for their clients, the longest first
	idle    map[netip.Prefix]int // how many of them an address has
	evicted []*limitedConn       // that are to be logged
}

// limitedConn is a connection of a limitedListener. A nil one has no limits.
type limitedConn struct {
	net.Conn
	of   *limitedListener
	from netip.Prefix

	// Guarded by of.mu.
	reasons int // to wait for the client
	since   time.Time
	place   *list.Element // among of.waiting; nil: it is the server's turn
	gone    bool
}

// Accept waits until there is room, and makes it where clients take their time.
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
	_ = noticeVanished(conn, l.limits.Vanished) // one that has ended by now is noticed anyway
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

// makeRoom closes connections until there is room for another one. A wait above 0 is after
// which to try again.
func (l *limitedListener) makeRoom() (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.waiting.Len() >= l.limits.Connections.idle || l.open >= l.limits.Connections.all {
		var worst *limitedConn // the oldest of the address that has most
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

// makeRoomOf closes the oldest of an address that has too many.
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

// evict closes a connection that waits, unless it has not waited for long: then it returns
// for how long it may still. The caller holds l.mu.
func (l *limitedListener) evict(c *limitedConn) (wait time.Duration) {
	if wait := l.limits.Connections.Grace - time.Since(c.since); wait > 0 {
		return wait
	}
	l.forget(c)
	_ = c.Conn.Close() // its handler notices
	l.evicted = append(l.evicted, c)
	return 0
}

// logEvicted logs them, which may take its time.
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

// forget takes a connection off the books. The caller holds l.mu.
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

// wait notes that the server waits for the client from now on.
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

// resume ends a wait. It reports whether the connection is still there.
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

// unlist takes a connection off those that wait. The caller holds c.of.mu.
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

// WithConnection has a request's context know its connection.
func WithConnection(ctx context.Context, conn net.Conn) context.Context {
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, conn)
}

// connectionOf is that of a request; nil if it has none with limits.
func connectionOf(r *http.Request) *limitedConn {
	c, _ := r.Context().Value(connectionKey{}).(*limitedConn)
	return c
}

// InTurn has every connection wait for its client but while a request is served.
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

// NetworkOf is who a remote address belongs to: somebody with IPv6 has a whole network. What
// is no such address is one of its own.
func NetworkOf(address string) (from netip.Prefix) {
	if at, err := netip.ParseAddrPort(address); err == nil {
		const network = 64
		plain := at.Addr().Unmap().WithZone("")
		from, _ = plain.Prefix(min(plain.BitLen(), network))
	}
	return from
}
