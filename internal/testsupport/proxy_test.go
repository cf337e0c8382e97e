package testsupport_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"baton/internal/testsupport"
)

// echo is a server that answers every line with the same line, and records the lines.
type echo struct {
	ln    net.Listener
	mu    sync.Mutex
	heard []string
}

func startEcho(t *testing.T) *echo {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{ln: ln}
	var work sync.WaitGroup
	t.Cleanup(func() { _ = ln.Close(); work.Wait() })
	work.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			work.Go(func() { e.serve(c) })
		}
	})
	return e
}

func (e *echo) serve(c net.Conn) {
	defer c.Close()
	for in := bufio.NewScanner(c); in.Scan(); {
		e.mu.Lock()
		e.heard = append(e.heard, in.Text())
		e.mu.Unlock()
		if in.Text() == "bye" {
			return // closes the connection without an answer
		}
		fmt.Fprintln(c, "re:"+in.Text())
	}
}

func (e *echo) log() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.heard, " ")
}

func dial(t *testing.T, p *testsupport.Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ask sends a line and waits for the answer.
func ask(c net.Conn, line string, wait time.Duration) (string, error) {
	if err := c.SetDeadline(time.Now().Add(wait)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintln(c, line); err != nil {
		return "", err
	}
	answer, err := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(answer), err
}

func mustAsk(t *testing.T, c net.Conn, line string) {
	t.Helper()
	if got, err := ask(c, line, time.Minute); err != nil || got != "re:"+line {
		t.Fatalf("asked %q: %q, %v", line, got, err)
	}
}

func TestProxyForwardsAndPassesOnTheEnd(t *testing.T) {
	p := testsupport.NewProxy(t, startEcho(t).ln.Addr().String())
	c := dial(t, p)
	mustAsk(t, c, "a")
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Fatalf("after the end: %v, want EOF", err)
	}
}

func TestCutResetsConnectionsAndWelcomesNewOnes(t *testing.T) {
	p := testsupport.NewProxy(t, startEcho(t).ln.Addr().String())
	c := dial(t, p)
	mustAsk(t, c, "a")
	p.Cut()
	if got, err := ask(c, "b", time.Minute); err == nil {
		t.Fatalf("a cut connection answered %q", got)
	}
	mustAsk(t, dial(t, p), "c")
}

func TestBlockedProxyRefuses(t *testing.T) {
	p := testsupport.NewProxy(t, startEcho(t).ln.Addr().String())
	c := dial(t, p)
	mustAsk(t, c, "a")
	p.Block()
	if got, err := ask(c, "b", time.Minute); err == nil {
		t.Fatalf("an old connection answered %q", got)
	}
	if _, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("dial: %v, want refused", err)
	}
	p.Unblock()
	mustAsk(t, dial(t, p), "c")
}

func TestHungProxyDeliversLater(t *testing.T) {
	e := startEcho(t)
	p := testsupport.NewProxy(t, e.ln.Addr().String())
	c := dial(t, p)
	mustAsk(t, c, "a")
	p.Hang()
	if got, err := ask(c, "b", 200*time.Millisecond); err == nil {
		t.Fatalf("a hung proxy answered %q", got)
	}
	if e.log() != "a" {
		t.Fatalf("the server heard %q through a hung proxy", e.log())
	}
	p.Unhang()
	if got, err := ask(c, "c", time.Minute); err != nil || got != "re:b" {
		t.Fatalf("first answer after the hang: %q, %v", got, err)
	}
}

func TestHungRepliesLetRequestsThrough(t *testing.T) {
	e := startEcho(t)
	p := testsupport.NewProxy(t, e.ln.Addr().String())
	c := dial(t, p)
	p.HangReplies()
	if got, err := ask(c, "a", 200*time.Millisecond); err == nil {
		t.Fatalf("got %q while replies hang", got)
	}
	testsupport.Await(t, "the server to hear a", func() bool { return e.log() == "a" })
}

func TestHungRequestsLetRepliesThrough(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	p := testsupport.NewProxy(t, ln.Addr().String())
	client := dial(t, p)
	server, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	p.HangRequests()
	fmt.Fprintln(server, "news")
	if got, err := ask(client, "question", time.Minute); err != nil || got != "news" {
		t.Fatalf("while requests hang the server's word is %q, %v", got, err)
	}
	if got, err := ask(server, "more news", 200*time.Millisecond); err == nil {
		t.Fatalf("the server heard %q while requests hang", got)
	}
	p.Unhang()
	if got, err := ask(server, "answer", time.Minute); err != nil || got != "question" {
		t.Fatalf("after the hang the server heard %q, %v", got, err)
	}
}

func TestStrandedConnectionsStaySilentAndNewOnesWork(t *testing.T) {
	e := startEcho(t)
	p := testsupport.NewProxy(t, e.ln.Addr().String())
	old := dial(t, p)
	mustAsk(t, old, "a")
	p.Strand()
	got, err := ask(old, "b", 100*time.Millisecond)
	var silence net.Error
	if !errors.As(err, &silence) || !silence.Timeout() {
		t.Errorf("a stranded connection: %q, %v; want silence", got, err)
	}
	mustAsk(t, dial(t, p), "c")
	if strings.Contains(e.log(), "b") {
		t.Error("the server has heard what was said on a stranded connection")
	}
}

func TestLostRequestNeverArrives(t *testing.T) {
	e := startEcho(t)
	p := testsupport.NewProxy(t, e.ln.Addr().String())
	lost := p.LoseRequest("commit")
	c := dial(t, p)
	mustAsk(t, c, "begin")
	if got, err := ask(c, "commit", time.Minute); err == nil {
		t.Fatalf("got %q for a lost request", got)
	}
	<-lost
	if e.log() != "begin" {
		t.Fatalf("the server heard %q, want begin alone", e.log())
	}
	mustAsk(t, dial(t, p), "commit") // the trap works only once
}

func TestLostReplyIsOfARequestThatArrived(t *testing.T) {
	e := startEcho(t)
	p := testsupport.NewProxy(t, e.ln.Addr().String())
	lost := p.LoseReply("commit")
	c := dial(t, p)
	mustAsk(t, c, "begin")
	if got, err := ask(c, "commit", time.Minute); err == nil {
		t.Fatalf("got %q for a lost reply", got)
	}
	<-lost
	if e.log() != "begin commit" {
		t.Fatalf("the server heard %q, want begin commit", e.log())
	}
	mustAsk(t, dial(t, p), "commit") // the trap works only once
}

func TestNextReplyIsLostWhateverWasAskedBefore(t *testing.T) {
	e := startEcho(t)
	p := testsupport.NewProxy(t, e.ln.Addr().String())
	c, other := dial(t, p), dial(t, p)
	mustAsk(t, c, "begin")
	mustAsk(t, other, "too") // after this answer the proxy has a connection that it can cut
	lost := p.LoseNextReply()
	if got, err := ask(c, "commit", time.Minute); err == nil {
		t.Fatalf("got %q for a lost reply", got)
	}
	<-lost
	if e.log() != "begin too commit" {
		t.Fatalf("the server heard %q, want begin too commit", e.log())
	}
	if got, err := ask(other, "more", time.Minute); err == nil {
		t.Fatalf("got %q on a connection that was cut", got)
	}
	mustAsk(t, dial(t, p), "commit") // the trap works only once
}

func TestReplyThatNeverComesIsNotTheLostOne(t *testing.T) {
	p := testsupport.NewProxy(t, startEcho(t).ln.Addr().String())
	lost := p.LoseReply("")
	c := dial(t, p)
	if got, err := ask(c, "bye", time.Minute); err == nil {
		t.Fatalf("got %q from a server that hung up", got)
	}
	_ = c.Close()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
		_, _ = ask(dial(t, p), "commit", time.Minute)
		select {
		case <-lost:
			return
		case <-time.After(time.Millisecond):
		}
	}
	t.Fatal("the trap waits for a reply on a connection that is gone")
}

func TestDatabasesAreReachedThroughAProxy(t *testing.T) {
	db := testsupport.Postgres(t)
	p := db.Proxy()
	if dsn := db.DSNThrough(p); !strings.Contains(dsn, p.Addr()) || strings.Contains(dsn, db.Addr()) {
		t.Fatalf("DSN %s does not go through %s", dsn, p.Addr())
	}
}
