package status

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"baton/internal/status/metrics"
	"baton/internal/status/statustest"
	"baton/internal/status/web"
	"baton/internal/testsupport"
)

// holding keeps n connections to the address open. Connection i comes from the address from(i). holding dials again if the server closes a
// connection. The clients send text, and then nothing. If deaf is set, the clients also do not read the answer.
func holding(t *testing.T, address string, n int, text string, deaf bool, from func(i int) string) {
	t.Helper()
	var open atomic.Int64
	for i := range n {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from(i))}}
		go func() {
			for t.Context().Err() == nil {
				conn, err := dialer.DialContext(t.Context(), "tcp", address)
				if err != nil {
					time.Sleep(10 * time.Millisecond)
					continue
				}
				open.Add(1)
				stop := make(chan struct{})
				go func() {
					select {
					case <-t.Context().Done():
						_ = conn.Close()
					case <-stop:
					}
				}()
				_, _ = io.WriteString(conn, text)
				if deaf {
					<-t.Context().Done()
				}
				_, _ = conn.Read(make([]byte, 1)) // returns when the server closes the connection
				close(stop)
				_ = conn.Close()
				open.Add(-1)
			}
		}()
	}
	testsupport.Await(t, fmt.Sprintf("%d open connections", n), func() bool { return open.Load() >= int64(n) })
}

func TestClientsThatSendNothingKeepNoProbeWaiting(t *testing.T) {
	one := func(int) string { return "127.0.0.1" }
	many := func(i int) string { return fmt.Sprintf("127.0.1.%d", i+1) }
	for name, c := range map[string]struct {
		text string
		deaf bool
		from func(i int) string
	}{
		"from one address":        {"", false, one},
		"from many":               {"", false, many},
		"half a request":          {"GET / HTTP/1.1\r\nHost: local", false, one},
		"half a form":             {"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nt", false, many},
		"answers that are unread": {strings.Repeat("GET /-/leader HTTP/1.1\r\nHost: localhost\r\n\r\n", 50), true, many},
	} {
		t.Run(name, func(t *testing.T) {
			_, address := serving(t, Config{Source: statustest.Fixed(statustest.Sample(time.Now())),
				Metrics: metrics.New("v1", []string{"views"}), TokenFile: tokenFile(t, secretToken)},
				func(s *Server) { // only the server's choice makes room for a probe, because there is no time limit
					l := web.DefaultLimits()
					l.Header, l.Read, l.Write, l.Idle, l.Vanished = time.Hour, time.Hour, time.Hour, time.Hour, time.Hour
					s.limits = l
				})
			holding(t, address, 200, c.text, c.deaf, c.from)
			client := http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
			for range 5 {
				for _, path := range []string{"/-/healthy", "/-/ready", "/metrics", "/"} {
					testsupport.AwaitNoError(t, "an answer to "+path, func() error { return probe(t, &client, "http://"+address+path) })
				}
			}
		})
	}
}

// probe sends one request. It returns an error if the busy machine has delayed the request or its answer, so that the server closed the
// connection as a waiting connection. The caller must then probe again.
func probe(t *testing.T, client *http.Client, url string) error {
	began := time.Now()
	resp, err := client.Get(url)
	if err == nil {
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", url, resp.Status)
		}
		_, err = io.Copy(io.Discard, resp.Body)
	}
	switch {
	case err == nil:
	case os.IsTimeout(err):
		t.Fatalf("%s: no answer: %v", url, err)
	case time.Since(began) < web.DefaultLimits().Connections.Grace:
		t.Errorf("%s: closed within its grace: %v", url, err)
	}
	return err
}
