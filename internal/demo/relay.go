package demo

import (
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// relay is a proxy between the nodes and Redis. It can cut the nodes off from Redis, while the generator stays connected to Redis.
type relay struct {
	listener net.Listener
	target   string

	mu   sync.Mutex
	cut  bool
	open map[net.Conn]struct{}
	wg   sync.WaitGroup
}

func newRelay(target string) (*relay, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the relay between the nodes and Redis: %w", err)
	}
	r := &relay{listener: ln, target: target, open: map[net.Conn]struct{}{}}
	r.wg.Go(r.accept)
	return r, nil
}

func (r *relay) addr() string { return r.listener.Addr().String() }

// close ends all connections, and waits for their end.
func (r *relay) close() {
	_ = r.listener.Close()
	r.setCut(true)
	r.wg.Wait()
}

// setCut cuts the relay if the argument cut is true: it ends all connections and refuses new ones. Otherwise the relay accepts connections
// again.
func (r *relay) setCut(cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = cut
	for c := range r.open {
		if cut {
			_ = c.Close()
		}
	}
}

// isCut reports whether the relay is cut, which means that it refuses connections.
func (r *relay) isCut() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cut
}

func (r *relay) accept() {
	for {
		c, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.wg.Go(func() { r.pass(c) })
	}
}

func (r *relay) pass(c net.Conn) {
	defer c.Close()
	if !r.add(c) {
		return
	}
	defer r.remove(c)
	up, err := net.DialTimeout("tcp", r.target, redisTimeout)
	if err != nil {
		return
	}
	defer up.Close()
	if !r.add(up) {
		return
	}
	defer r.remove(up)
	var both sync.WaitGroup
	one := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // ignored, because either side may close at any time
		_ = to.SetReadDeadline(time.Now())
		_ = from.SetReadDeadline(time.Now())
	}
	both.Go(func() { one(up, c) })
	one(c, up)
	both.Wait()
}

// add registers a connection, unless the relay is cut.
func (r *relay) add(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.cut {
		r.open[c] = struct{}{}
	}
	return !r.cut
}

func (r *relay) remove(c net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, c)
}
