package testsupport

import (
	"bytes"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy forwards TCP connections on loopback, and breaks them when a test asks for it.
type Proxy struct {
	port   int
	target string
	work   sync.WaitGroup // counts the listener and every direction of every connection

	mu       sync.Mutex
	ln       net.Listener // nil while blocked
	links    map[*link]struct{}
	requests gate // bytes to the server
	replies  gate // bytes to the client
	trap     *trap
}

// NewProxy starts a Proxy that forwards connections to the address target until the test ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	p, err := RunProxy(target)
	if err != nil {
		t.Fatalf("start a proxy for this test: %v", err)
	}
	t.Cleanup(p.Close)
	return p
}

// RunProxy starts a Proxy that forwards connections to the address target until Close is called.
func RunProxy(target string) (*Proxy, error) {
	port, ln, err := listenFree()
	if err != nil {
		return nil, err
	}
	p := &Proxy{port: port, target: target, links: map[*link]struct{}{}}
	p.serve(ln)
	return p, nil
}

// Addr returns the address to connect to.
func (p *Proxy) Addr() string { return loopback(p.port) }

// Close ends the proxy and its connections.
func (p *Proxy) Close() {
	p.Block()
	p.Unhang()
	p.work.Wait()
}

// Cut resets every connection. The proxy still accepts new connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.reset()
	}
}

// Block cuts every connection and refuses new ones.
func (p *Proxy) Block() {
	p.mu.Lock()
	if p.ln != nil {
		_ = p.ln.Close() // the listener may already be closed
		p.ln = nil
	}
	p.mu.Unlock()
	p.Cut()
}

// Unblock accepts connections again, on the same port.
func (p *Proxy) Unblock() {
	p.mu.Lock()
	blocked := p.ln == nil
	p.mu.Unlock()
	for try := 0; blocked; try++ {
		ln, err := net.Listen("tcp4", p.Addr())
		if err == nil {
			p.serve(ln)
			return
		}
		if try == 100 {
			panic(fmt.Sprintf("testsupport: the proxy's port was taken while it was blocked: %v", err))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Hang stops forwarding in both directions. Connections stay open, also new ones.
func (p *Proxy) Hang() { p.setGates(true, true) }

// HangRequests holds back the bytes from clients. The server's replies still arrive.
func (p *Proxy) HangRequests() { p.setGates(true, false) }

// HangReplies holds back the bytes from the server. The clients' requests still arrive.
func (p *Proxy) HangReplies() { p.setGates(false, true) }

// Unhang forwards again, and begins with the bytes that were held back.
func (p *Proxy) Unhang() { p.setGates(false, false) }

// Strand permanently silences the connections that are open now: the proxy forwards no bytes, and neither side gets an error, as if a
// firewall had forgotten the connections. New connections work.
func (p *Proxy) Strand() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.stranded = true
	}
}

// LoseRequest makes the proxy drop the next bytes from a client that contain pattern, and cut every connection at that moment. This happens
// once, and then the returned channel is closed.
func (p *Proxy) LoseRequest(pattern string) <-chan struct{} {
	return p.setTrap(trap{pattern: []byte(pattern)})
}

// HangAfterRequest makes the proxy forward the next bytes from a client that contain pattern, and then hold back later bytes from clients,
// like HangRequests. This happens once, and then the returned channel is closed.
func (p *Proxy) HangAfterRequest(pattern string) <-chan struct{} {
	return p.setTrap(trap{pattern: []byte(pattern), hang: true})
}

// LoseReply makes the proxy forward the next bytes from a client that contain pattern, and cut every connection when the server answers.
// The server has then executed the command, but the client gets no reply. This happens once, and then the returned channel is closed.
func (p *Proxy) LoseReply(pattern string) <-chan struct{} {
	return p.setTrap(trap{pattern: []byte(pattern), reply: true})
}

// LoseNextReply makes the proxy cut every connection when the server next sends any bytes. LoseReply waits for a request first, but some
// bytes of a server are not the reply to a request.
func (p *Proxy) LoseNextReply() <-chan struct{} { return p.setTrap(trap{any: true}) }

// trap describes the bytes that the proxy waits for, and what the proxy then does.
type trap struct {
	pattern []byte
	reply   bool  // forward the request, lose its reply
	hang    bool  // forward the request, but no later request
	any     bool  // lose the next bytes of the server
	armed   *link // the connection whose next reply is lost
	sprung  chan struct{}
}

func (p *Proxy) setTrap(t trap) <-chan struct{} {
	t.sprung = make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trap = &t
	return t.sprung
}

// springs reports whether the proxy must lose the bytes b, which it has received on the link l.
func (p *Proxy) springs(l *link, request bool, b []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.trap
	if t == nil {
		return false
	}
	switch {
	case t.any:
		if request {
			return false
		}
	case request && t.armed == nil && bytes.Contains(b, t.pattern):
		if t.reply {
			t.armed = l
			return false
		}
	case !request && t.armed == l:
	default:
		return false
	}
	p.trap = nil
	close(t.sprung)
	if t.hang {
		p.requests.set(true)
	}
	return !t.hang
}

func (p *Proxy) setGates(requests, replies bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests.set(requests)
	p.replies.set(replies)
}

// gate lets bytes pass or holds them back. It is open if the channel shut is nil. When a shut gate opens, that channel is closed.
type gate struct{ shut chan struct{} }

func (g *gate) set(shut bool) {
	switch {
	case shut && g.shut == nil:
		g.shut = make(chan struct{})
	case !shut && g.shut != nil:
		close(g.shut)
		g.shut = nil
	}
}

func (p *Proxy) serve(ln net.Listener) {
	p.mu.Lock()
	p.ln = ln
	p.mu.Unlock()
	p.work.Go(func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			p.work.Go(func() { p.forward(ln, client.(*net.TCPConn)) })
		}
	})
}

// link contains one client's connection to the proxy, and the proxy's connection to the server for that client.
type link struct {
	client, server *net.TCPConn
	gone           chan struct{}
	once           sync.Once
	stranded       bool // guarded by the proxy's mu
}

// reset closes both sides with a TCP reset, so that bytes in transit are lost.
func (l *link) reset() {
	l.once.Do(func() {
		close(l.gone)
		for _, c := range []*net.TCPConn{l.client, l.server} {
			_ = c.SetLinger(0) // the connection is closed, even if this fails
			_ = c.Close()
		}
	})
}

func (p *Proxy) forward(ln net.Listener, client *net.TCPConn) {
	server, err := net.Dial("tcp4", p.target)
	if err != nil {
		_ = client.SetLinger(0)
		_ = client.Close()
		return
	}
	l := &link{client: client, server: server.(*net.TCPConn), gone: make(chan struct{})}
	p.mu.Lock()
	if p.ln != ln { // the proxy was blocked while it dialled
		l.reset()
	}
	p.links[l] = struct{}{}
	p.mu.Unlock()

	var both sync.WaitGroup
	both.Go(func() { p.copy(l, true) })
	both.Go(func() { p.copy(l, false) })
	both.Wait()
	l.reset()
	p.mu.Lock()
	delete(p.links, l)
	if p.trap != nil && p.trap.armed == l {
		p.trap.armed = nil // the connection ended without a reply, so the reply of the next request is lost
	}
	p.mu.Unlock()
}

// copy forwards the bytes of one direction. When the sender closes its direction, copy also closes the direction towards the receiver.
func (p *Proxy) copy(l *link, request bool) {
	from, to := l.server, l.client
	if request {
		from, to = l.client, l.server
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		p.waitGate(l, request)
		if n > 0 && p.springs(l, request, buf[:n]) {
			p.Cut()
			return
		}
		if _, werr := to.Write(buf[:n]); werr != nil {
			l.reset()
			return
		}
		if err != nil {
			_ = to.CloseWrite() // fails if the receiver has already closed the connection
			return
		}
	}
}

func (p *Proxy) waitGate(l *link, request bool) {
	p.mu.Lock()
	shut := p.replies.shut
	if request {
		shut = p.requests.shut
	}
	stranded := l.stranded
	p.mu.Unlock()
	if stranded {
		<-l.gone
		return
	}
	if shut == nil {
		return
	}
	select {
	case <-shut:
	case <-l.gone:
	}
}
