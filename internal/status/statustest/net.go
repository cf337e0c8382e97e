package statustest

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// Pipes is a listener whose connections have no buffer. So each write waits until the other side reads.
type Pipes struct {
	dialled chan net.Conn
	closed  chan struct{}
}

// Accept implements [net.Listener].
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.dialled:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (p *Pipes) Close() error {
	close(p.closed)
	return nil
}

// Addr implements [net.Listener].
func (p *Pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 9747} }

// NewPipes returns a Pipes without connections.
func NewPipes() *Pipes { return &Pipes{make(chan net.Conn), make(chan struct{})} }

// Dial makes the listener accept the connection conn.
func (p *Pipes) Dial(conn net.Conn) { p.dialled <- conn }

// Send connects a client that sends a text, and then does nothing more.
func (p *Pipes) Send(t *testing.T, text string) {
	client, server := net.Pipe()
	t.Cleanup(func() { _ = client.Close() })
	p.dialled <- server
	go func() { _, _ = io.WriteString(client, text) }()
}

// Listen returns a listener on a free loopback port.
func Listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// Within returns the next value of c. It fails the test if no value arrives in time.
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

// SlowReader is a response writer that can block writes, as if its client did not read.
type SlowReader struct {
	*httptest.ResponseRecorder
	block chan struct{} // if nil, every write succeeds immediately
}

// NewSlowReader returns a SlowReader. Its writes block until the channel block is closed, and then fail. If block is nil, every write
// succeeds.
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

// SetWriteDeadline does nothing. It exists because a [http.ResponseController] calls it.
func (w *SlowReader) SetWriteDeadline(time.Time) error { return nil }
