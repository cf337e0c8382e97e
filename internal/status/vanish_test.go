//go:build linux

package status

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"baton/internal/diagnose"
	"baton/internal/status/state"
	"baton/internal/status/statustest"
	"baton/internal/testsupport"
)

// vanish makes a client neither acknowledge nor reset the connection, as if its cable were pulled.
func vanish(t *testing.T, conn net.Conn) {
	t.Helper()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var set error
	err = raw.Control(func(fd uintptr) {
		drop := []sys.SockFilter{{Code: sys.BPF_RET | sys.BPF_K, K: 0}}
		set = sys.SetsockoptSockFprog(int(fd), sys.SOL_SOCKET, sys.SO_ATTACH_FILTER, &sys.SockFprog{Len: 1, Filter: &drop[0]})
	})
	if err != nil || set != nil {
		t.Fatal(err, set)
	}
}

func TestWhoVanishesHasNoPlaceForLong(t *testing.T) {
	_, address := serving(t, Config{Source: func(context.Context) (diagnose.Snapshot, error) { return statustest.Sample(time.Now()), nil }},
		func(s *Server) { s.limits.Vanished = time.Second })
	conns := make([]net.Conn, state.MaxStreams)
	for i := range conns {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := conn.Write([]byte("GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
			t.Fatal(line, err)
		}
		conns[i] = conn
	}
	if code := streams(t, address); code != http.StatusServiceUnavailable {
		t.Fatalf("one stream more: %d", code)
	}
	for _, conn := range conns {
		vanish(t, conn)
	}
	testsupport.Await(t, "the places of those who have vanished", func() bool { return streams(t, address) == http.StatusOK })
}

// streams returns the status code of a request for a stream.
func streams(t *testing.T, address string) int {
	t.Helper()
	_, hangUp, code := stream(t, address)
	hangUp()
	return code
}
