package status

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/status/auth"
	"baton/internal/status/metrics"
	"baton/internal/status/statustest"
)

func TestWhoSendsOrReadsSlowlyTakesNobodysPlace(t *testing.T) {
	for how, text := range map[string]string{
		"a form that drips": "POST /sign-in HTTP/1.1\r\nHost: db1\r\nContent-Type: " +
			"application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\nnext=",
		"another form that drips": "POST /do HTTP/1.1\r\nHost: db1\r\nContent-Type: " +
			"application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\naction=",
		"a page that nobody reads":    "GET / HTTP/1.1\r\nHost: db1\r\n\r\n",
		"a state that nobody reads":   "GET /api/v1/status HTTP/1.1\r\nHost: db1\r\n\r\n",
		"a list that nobody reads":    "GET /api/v1/jobs HTTP/1.1\r\nHost: db1\r\n\r\n",
		"metrics that nobody watches": "GET /metrics HTTP/1.1\r\nHost: db1\r\n\r\n",
	} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				s := New(Config{Source: statustest.Fixed(statustest.Sample(time.Now())), Health: standby,
					Do: (&given{}).do, TokenFile: tokenFile(t, secretToken), Metrics: metrics.New("v1", nil)})
				ln, served := statustest.NewPipes(), make(chan error, 1)
				go func() { served <- s.Serve(ctx, ln) }()
				for range maxRequests + 1 {
					ln.Send(t, text)
				}
				synctest.Wait()
				for _, path := range []string{"/", "/metrics", "/api/v1/status", "/api/v1/jobs"} {
					if rec := statustest.Get(s, path); rec.Code != http.StatusOK {
						t.Errorf("%s: %d", path, rec.Code)
					}
				}
				stop()
				if err := <-served; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestWhoGuessesOnThePageTakesNobodysPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := guarded(t)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		for range 2 * auth.FreeFailures {
			send(s, "/api/v1/pause", "", bearer("wrong")...)
		}
		for range 100 {
			go func() {
				r := from(httptest.NewRequest(http.MethodPost, "http://localhost:9747/sign-in",
					strings.NewReader("token=wrongwrongwrongwrong")).WithContext(ctx), loopbackAddr)
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				r.Header.Set("Sec-Fetch-Site", "same-origin")
				s.ServeHTTP(httptest.NewRecorder(), r)
			}()
		}
		synctest.Wait()
		if rec := statustest.Get(s, "/"); rec.Code != http.StatusOK {
			t.Errorf("the page: %d", rec.Code)
		}
	})
}
