package status

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"baton/internal/status/metrics"
	"baton/internal/status/statustest"
	"baton/internal/status/web"
	"baton/internal/testsupport"
)

// holding keeps n connections to address open, each from where from says, and dials each
// again that the server closes. They send text, and then nothing; those that are deaf read
// no answer, either.
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
				_, _ = conn.Read(make([]byte, 1)) // returns when the server closes it
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
				Metrics: metrics.New("v1", []string{"views"}), TokenFile: tokenFile(t, secretToken)})
			holding(t, address, 200, c.text, c.deaf, c.from)
			client := http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
			var worst time.Duration
			slow, asked := 0, 0 // on a busy machine what was sent at once takes its time
			for range 5 {
				for _, path := range []string{"/-/healthy", "/-/ready", "/metrics", "/"} {
					began, connecting := testsupport.StartStopwatch(t), time.Now()
					resp, err := client.Get("http://" + address + path)
					if err != nil && time.Since(connecting) > web.DefaultLimits().Connections.Grace {
						asked, slow = asked+1, slow+1 // the machine held up the request until its connection counted as idle
						continue
					}
					if err != nil {
						t.Errorf("%s: %v after %v", path, err, began.Took())
						continue
					}
					_, err = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
					took := began.Took()
					worst = max(worst, took)
					if err != nil || resp.StatusCode != http.StatusOK {
						t.Errorf("%s: %d, %v after %v", path, resp.StatusCode, err, took)
					}
					asked++
					if took > testsupport.Paced(2*time.Second) {
						slow++
					}
				}
			}
			if 2*slow > asked {
				t.Errorf("%d of %d answers were slow", slow, asked)
			}
			t.Logf("the slowest answer took %v", worst.Round(time.Millisecond))
		})
	}
}
