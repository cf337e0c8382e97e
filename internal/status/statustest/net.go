package statustest

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// Pipes is a listener whose connections buffer nothing: whoever does not read holds up
// whoever writes.
type Pipes struct {
	dialled chan net.Conn
	closed  chan struct{}
}

// Accept is a [net.Listener]'s.
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.dialled:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close is a [net.Listener]'s.
func (p *Pipes) Close() error {
	close(p.closed)
	return nil
}

// Addr is a [net.Listener]'s.
func (p *Pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 9747} }

// NewPipes returns one without connections.
func NewPipes() *Pipes { return &Pipes{make(chan net.Conn), make(chan struct{})} }

// Dial has it accept a connection.
func (p *Pipes) Dial(conn net.Conn) { p.dialled <- conn }

// Send is a client that sends a text, and then does nothing more.
func (p *Pipes) Send(t *testing.T, text string) {
	client, server := net.Pipe()
	t.Cleanup(func() { _ = client.Close() })
	p.dialled <- server
	go func() { _, _ = io.WriteString(client, text) }()
}

// Listen returns a listener on a free port of loopback.
func Listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// Within fails the test if c does not deliver in time.
func Within[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		t.Fatalf("%s: nothing within a minute", what)
		panic("unreachable")
	}
}

// SlowReader takes what it is sent, or does not.
type SlowReader struct {
	*httptest.ResponseRecorder
	block chan struct{} // nil: it takes everything
}

// NewSlowReader returns one that takes nothing until block is closed; nil: it takes everything.
func NewSlowReader(block chan struct{}) *SlowReader {
	return &SlowReader{ResponseRecorder: httptest.NewRecorder(), block: block}
}

func (w *SlowReader) Write(p []byte) (int, error) {
	if w.block != nil {
		<-w.block
		return 0, http.ErrHandlerTimeout
	}
	return w.ResponseRecorder.Write(p)
}

// SetWriteDeadline does nothing.
func (w *SlowReader) SetWriteDeadline(time.Time) error { return nil }
