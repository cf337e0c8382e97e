package status

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"baton/internal/diagnose"
	"baton/internal/status/state"
	"baton/internal/status/statustest"
	"baton/internal/status/web"
	"baton/internal/testsupport"
	"baton/internal/text"
)

// changing returns a source whose state changes whenever the first number changes. The second number counts the requests.
func changing() (state.Source, *atomic.Int64, *atomic.Int64) {
	var epoch, asked atomic.Int64
	return func(context.Context) (diagnose.Snapshot, error) {
		asked.Add(1)
		return diagnose.Snapshot{NodeID: "db1", Now: time.Now(), Leader: &diagnose.Leader{NodeID: "db1",
			Epoch: epoch.Load(), LeaseLeft: text.Seconds(time.Now().UnixMilli()%1000) * text.Millisecond}}, nil
	}, &epoch, &asked
}

// serving runs a server on a free port until the test ends.
func serving(t *testing.T, c Config, changes ...func(*Server)) (s *Server, address string) {
	t.Helper()
	c.Health = standby
	s = New(c)
	for _, change := range changes {
		change(s)
	}
	return s, servingOn(t, s, statustest.Listen(t))
}

// servingOn runs a server on a listener until the test ends.
func servingOn(t *testing.T, s *Server, ln net.Listener) (address string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, ln) }()
	t.Cleanup(func() {
		stop()
		if err := statustest.Within(t, served, "Serve returns"); err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// stream opens a stream and returns its lines.
func stream(t *testing.T, address string) (lines <-chan string, hangUp func(), code int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/api/v1/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req) //nolint:bodyclose // it is closed where it is read
	if err != nil {
		t.Fatal(err)
	}
	c := make(chan string, 100)
	go func() {
		defer close(c)
		defer func() { _ = resp.Body.Close() }()
		in := bufio.NewScanner(resp.Body)
		for in.Scan() {
			c <- in.Text()
		}
	}()
	return c, cancel, resp.StatusCode
}

func next(t *testing.T, lines <-chan string, prefix string) string {
	t.Helper()
	for {
		line := statustest.Within(t, lines, prefix)
		if strings.HasPrefix(line, prefix) {
			return line
		}
	}
}

func TestAStreamTellsWhatHasChangedAndOneGoroutineGathersForAll(t *testing.T) {
	source, epoch, asked := changing()
	_, address := serving(t, Config{Source: source})
	first, hangUp, _ := stream(t, address)
	if line := next(t, first, "data:"); !strings.Contains(line, `"epoch":0`) {
		t.Error(line)
	}
	var hang []func()
	for range state.MaxStreams - 1 {
		lines, end, code := stream(t, address)
		if code != 200 {
			t.Fatal(code)
		}
		hang = append(hang, end)
		next(t, lines, "data:")
	}
	if _, _, code := stream(t, address); code != http.StatusServiceUnavailable {
		t.Errorf("one stream more than there may be: %d", code)
	}
	before, began := asked.Load(), time.Now()
	epoch.Store(7)
	if line := next(t, first, "data:"); !strings.Contains(line, `"epoch":7`) {
		t.Error(line)
	}
	told := asked.Load()
	testsupport.Await(t, "the source to be asked again, and again", func() bool { return asked.Load() >= told+2 })
	epoch.Store(8)
	if line := next(t, first, "data:"); !strings.Contains(line, `"epoch":8`) {
		t.Errorf("told although nothing has changed: %s", line)
	}
	if n, most := asked.Load()-before, int64(time.Since(began)/time.Second)+3; n > most {
		t.Errorf("the source was asked %d times in %v for %d streams", n, time.Since(began), state.MaxStreams)
	}
	for _, end := range append(hang, hangUp) {
		end()
	}
	quiet := asked.Load()
	for deadline := time.Now().Add(time.Minute); ; quiet = asked.Load() {
		time.Sleep(1500 * time.Millisecond)
		if asked.Load() == quiet {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody watches any more, and gathering goes on")
		}
	}
}

func TestStreamsEndWithTheServerAtOnce(t *testing.T) {
	source, _, _ := changing()
	ctx, stop := context.WithCancel(t.Context())
	s := New(Config{Source: source, Health: standby})
	ln, served := statustest.Listen(t), make(chan error, 1)
	go func() { served <- s.Serve(ctx, ln) }()
	resp, err := http.Get("http://" + ln.Addr().String() + "/api/v1/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	in := bufio.NewReader(resp.Body)
	if line, err := in.ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	stop()
	if err := statustest.Within(t, served, "Serve returns"); err != nil {
		t.Error(err)
	}
	if _, err := io.Copy(io.Discard, in); err != nil { // a stream without an end is cut off
		t.Errorf("the stream has no end: %v", err)
	}
}

// slow opens a connection of a client that holds the connection but reads or sends almost nothing.
func slow(t *testing.T, address, how string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10) // so that the buffer is full soon
	start := map[string]string{
		"headers that never end": "GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\nX-A: ",
		"a body that drips": "POST /api/v1/pause HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + secretToken +
			"\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
		"a stream that nobody reads": "GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"answers that nobody reads":  strings.Repeat("GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
		"half closed":                "GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\n",
	}[how]
	if start == "" {
		t.Fatal(how)
	}
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second)) // the server may stop reading
	_, _ = conn.Write([]byte(start))
	if how == "half closed" {
		_ = conn.(*net.TCPConn).CloseWrite()
	}
	return conn
}

// narrow is a listener whose connections have a small buffer in the kernel, so that a client that reads nothing is noticed after a few
// kilobytes.
type narrow struct{ net.Listener }

func (n narrow) Accept() (net.Conn, error) {
	conn, err := n.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(4 << 10) // otherwise the test would have to send more
	}
	return conn, err
}

// TestSlowClientsHoldNobodyUpAndAreLetGo checks that an answer arrives while all slow clients are still connected. This is certain because
// their time limits are at least twice as long.
func TestSlowClientsHoldNobodyUpAndAreLetGo(t *testing.T) {
	big := statustest.Sample(time.Now())
	for i := range 60 { // far more than the kernel buffers
		big.Jobs = append(big.Jobs, diagnose.Job{Name: fmt.Sprintf("job-%d", i), LastRun: &diagnose.Run{Error: strings.Repeat("x", 3000)}})
	}
	var n atomic.Int64
	g := &given{}
	c := Config{TokenFile: tokenFile(t, secretToken), Do: g.do, Source: func(context.Context) (diagnose.Snapshot, error) {
		s := big
		s.LockKey = fmt.Sprint(n.Add(1)) // a new state for each request
		return s, nil
	}}
	ask := func(address string) time.Duration {
		began := time.Now()
		client := http.Client{Timeout: 3 * time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
		for _, path := range []string{"/-/leader", "/api/v1/status", "/"} {
			resp, err := client.Get("http://" + address + path)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK && path != "/-/leader" {
				t.Errorf("%s: %d", path, resp.StatusCode)
			}
		}
		return time.Since(began)
	}
	c.Health = standby
	_, undisturbed := serving(t, c)
	var calm time.Duration
	for range 3 {
		calm = max(calm, ask(undisturbed))
	}
	most := min(time.Second+20*calm, 20*time.Second)
	s := New(c)
	s.limits = web.Limits{Header: most, Read: most, Write: 2 * most, Idle: most, Connections: web.DefaultLimits().Connections}
	address := servingOn(t, s, narrow{statustest.Listen(t)})
	ask(address)
	before := runtime.NumGoroutine()
	var conns []net.Conn
	for _, how := range []string{"headers that never end", "a body that drips", "a stream that nobody reads",
		"answers that nobody reads", "half closed"} {
		for range 12 {
			conns = append(conns, slow(t, address, how))
		}
	}
	for range 3 {
		if took := ask(address); took > most {
			t.Errorf("with %d slow clients an answer took %v, without them %v", len(conns), took, calm)
		}
	}
	if g.count() != 0 {
		t.Error("half an order was carried out")
	}
	// All slow clients are disconnected, although they do not close their ends.
	for deadline := time.Now().Add(time.Minute + 3*most); runtime.NumGoroutine() > before+5; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, there were %d:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
	}
	for _, c := range conns {
		_ = c.Close()
	}
}
