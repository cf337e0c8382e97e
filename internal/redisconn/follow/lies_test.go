package follow

import (
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/testsupport"
)

// A master whose replies are not those of a Redis is refused, and its replies need no memory.
func TestALieInTheHandshakeIsAnError(t *testing.T) {
	for _, lie := range testsupport.Lies {
		liar := testsupport.NewLiar(t, nil, lie)
		s := redistest.Open(t, redisconn.Options{URL: "redis://" + liar.Addr(), ClientName: "baton-test"})
		masters, err := s.Masters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err = Join(t.Context(), Master{Socket: masters[0].Socket, Wait: 200 * time.Millisecond})
		runtime.ReadMemStats(&after)
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; err == nil || used > 64 {
			t.Errorf("%.30q: %v, %d MiB", lie, err, used)
		}
	}
}

// A master whose stream contains false lengths is also refused.
func TestALieInTheStreamIsAnError(t *testing.T) {
	for _, c := range []struct {
		sent    string
		garbled bool // otherwise Follow waits for the missing bytes
	}{
		{"*9000000000000000000\r\n", true},
		{"*1\r\n$9000000000000000000\r\n", true},
		{"*1\r\n$-5\r\n", true},
		{"*-5\r\n", true},
		{"*1000000000000\r\n", false},
		{"*1\r\n$1000000000000\r\n" + strings.Repeat("x", 1<<20), false},
		{"*1000000000000\r\n" + strings.Repeat("$0\r\n\r\n", 1_000_000), false},
		{"*1000000000000\r\n" + strings.Repeat("$65537\r\n"+strings.Repeat("x", 65537)+"\r\n", 20), false},
	} {
		server, client := net.Pipe()
		go func() {
			_, _ = io.WriteString(server, c.sent) // the write fails if the client refuses the text
			_ = server.Close()
		}()
		s := newStream(newReader(client), Position{})
		err := s.follow(newRecord())
		if errors.Is(err, ErrGarbled) != c.garbled || err == nil {
			t.Errorf("%.40q: %v", c.sent, err)
		}
		if n := cap(s.buf) + 40*cap(s.spans); n > 3*most {
			t.Errorf("%.40q: %d bytes are kept", c.sent, n)
		}
		_ = client.Close()
	}
}
