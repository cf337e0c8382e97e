package testsupport

import (
	"bytes"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy forwards TCP connections on loopback, and breaks them on demand.
type Proxy struct {
	port   int
	target string
	work   sync.WaitGroup // the listener and every direction of every connection

	mu       sync.Mutex
	ln       net.Listener // nil while blocked
	links    map[*link]struct{}
	requests gate // bytes to the server
	replies  gate // bytes to the client
	trap     *trap
}

// NewProxy forwards to target until the test ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	p, err := RunProxy(target)
	if err != nil {
		t.Fatalf("start a proxy for this test: %v", err)
	}
	t.Cleanup(p.Close)
	return p
}

// RunProxy forwards to target until Close.
func RunProxy(target string) (*Proxy, error) {
	port, ln, err := listenFree()
	if err != nil {
		return nil, err
	}
	p := &Proxy{port: port, target: target, links: map[*link]struct{}{}}
	p.serve(ln)
	return p, nil
}

// Addr is where to connect to.
func (p *Proxy) Addr() string { return loopback(p.port) }

// Close ends the proxy and its connections.
func (p *Proxy) Close() {
	p.Block()
	p.Unhang()
	p.work.Wait()
}

// Cut resets every connection. New ones are welcome.
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
		_ = p.ln.Close() // closed twice is closed
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

// Hang stops forwarding in both directions. Connections stay open, new ones too.
func (p *Proxy) Hang() { p.setGates(true, true) }

// HangRequests holds back what clients say: they go on hearing the server.
func (p *Proxy) HangRequests() { p.setGates(true, false) }

// HangReplies holds back what the server says: it goes on hearing its clients.
func (p *Proxy) HangReplies() { p.setGates(false, true) }

// Unhang forwards again, first of all what was held back.
func (p *Proxy) Unhang() { p.setGates(false, false) }

// Strand silences the connections that there are, for good: nothing is forwarded on
// them any more and neither side is told, as if a firewall had forgotten them. New
// ones work.
func (p *Proxy) Strand() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.stranded = true
	}
}

// LoseRequest cuts every connection instead of forwarding the next bytes from a
// client that contain pattern: the server never hears of them. It works once.
// The channel is closed when it happened.
func (p *Proxy) LoseRequest(pattern string) <-chan struct{} {
	return p.setTrap(trap{pattern: []byte(pattern)})
}

// HangAfterRequest forwards the next bytes from a client that contain pattern, and holds
// back what clients say after them, as HangRequests does. It works once. The channel is
// closed when it happens.
func (p *Proxy) HangAfterRequest(pattern string) <-chan struct{} {
	return p.setTrap(trap{pattern: []byte(pattern), hang: true})
}

// LoseReply forwards the next bytes from a client that contain pattern, and cuts
// every connection when the server answers: done, but nobody was told. It works
// once. The channel is closed when it happened.
func (p *Proxy) LoseReply(pattern string) <-chan struct{} {
	return p.setTrap(trap{pattern: []byte(pattern), reply: true})
}

// LoseNextReply cuts every connection when the server next says anything. Some
// requests have no reply, so this is not LoseReply of just any request.
func (p *Proxy) LoseNextReply() <-chan struct{} { return p.setTrap(trap{any: true}) }

// trap waits for a pattern in what clients say.
type trap struct {
	pattern []byte
	reply   bool  // let the request through, lose its reply
	hang    bool  // let the request through, and nothing after it
	any     bool  // lose whatever the server says next
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

// springs says whether these bytes are to be lost.
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

// gate is open unless it holds a channel, which is closed when it opens.
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

// link is one client's connection and its counterpart to the server.
type link struct {
	client, server *net.TCPConn
	gone           chan struct{}
	once           sync.Once
	stranded       bool // guarded by the proxy's mu
}

// reset drops both sides hard: what was under way is lost.
func (l *link) reset() {
	l.once.Do(func() {
		close(l.gone)
		for _, c := range []*net.TCPConn{l.client, l.server} {
			_ = c.SetLinger(0) // the connection goes either way
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
	if p.ln != ln { // blocked while we dialled
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
		p.trap.armed = nil // it ended without a reply: that of the next request is lost
	}
	p.mu.Unlock()
}

// copy forwards one direction until its end, which it passes on.
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
			_ = to.CloseWrite() // a side that is gone already needs no end of stream
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
