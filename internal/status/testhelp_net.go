package status

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// pipes is a listener whose connections buffer nothing: whoever does not read holds up
// whoever writes.
type pipes struct {
	dialled chan net.Conn
	closed  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.dialled:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 9747} }

// newPipes returns one without connections.
func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

// dial has it accept a connection.
func (p *pipes) dial(conn net.Conn) { p.dialled <- conn }

// send is a client that sends a text, and then does nothing more.
func (p *pipes) send(t *testing.T, text string) {
	client, server := net.Pipe()
	t.Cleanup(func() { _ = client.Close() })
	p.dialled <- server
	go func() { _, _ = io.WriteString(client, text) }()
}

// listen returns a listener on a free port of loopback.
func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// within fails the test if c does not deliver in time.
func within[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		t.Fatalf("%s: nothing within a minute", what)
		panic("unreachable")
	}
}

// slowReader takes what it is sent, or does not.
type slowReader struct {
	*httptest.ResponseRecorder
	block chan struct{} // nil: it takes everything
}

// newSlowReader returns one that takes nothing until block is closed; nil: it takes everything.
func newSlowReader(block chan struct{}) *slowReader {
	return &slowReader{ResponseRecorder: httptest.NewRecorder(), block: block}
}

func (w *slowReader) Write(p []byte) (int, error) {
	if w.block != nil {
		<-w.block
		return 0, http.ErrHandlerTimeout
	}
	return w.ResponseRecorder.Write(p)
}

func (w *slowReader) SetWriteDeadline(time.Time) error { return nil }
