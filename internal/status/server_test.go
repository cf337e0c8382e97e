package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/diagnose"
	"baton/internal/status/metrics"
	"baton/internal/status/state"
	"baton/internal/status/statustest"
	"baton/internal/text"
)

func standby() Health { return Health{Live: true, Ready: true, Leader: "db1"} }

// apiState decodes an answer of the API.
func apiState(t *testing.T, rec *httptest.ResponseRecorder) diagnose.Snapshot {
	t.Helper()
	var s diagnose.Snapshot
	if err := json.Unmarshal(rec.Body.Bytes(), &s); err != nil {
		t.Fatalf("API answered %d and no JSON: %v\n%s", rec.Code, err, rec.Body)
	}
	return s
}

func TestHealthEndpointsAnswerByRoleAndReason(t *testing.T) {
	starting := Health{Live: true, Reason: "the databases are being checked"}
	leading := Health{Live: true, Ready: true, Leading: true, Leader: "db2"}
	stuck := Health{Ready: true, Reason: "the job loop has not moved for 40s"}
	for _, c := range []struct {
		path   string
		health Health
		code   int
		text   string
	}{
		{"/-/healthy", standby(), 200, "healthy"},
		{"/-/healthy", leading, 200, "healthy"},
		{"/-/healthy", stuck, 503, "the job loop has not moved for 40s"},
		{"/-/healthy", Health{}, 503, "a loop makes no progress"},
		{"/-/ready", standby(), 200, "ready"},
		{"/-/ready", leading, 200, "ready"},
		{"/-/ready", starting, 503, "the databases are being checked"},
		{"/-/leader", leading, 200, "leading"},
		{"/-/leader", standby(), 503, "leader: db1"},
		{"/-/leader", starting, 503, "leader: unknown"},
	} {
		rec := statustest.Get(New(Config{Source: statustest.Fixed(diagnose.Snapshot{}), Health: func() Health { return c.health }}), c.path)
		if rec.Code != c.code || !strings.Contains(rec.Body.String(), c.text) {
			t.Errorf("%s with %+v: %d %q, want %d with %q", c.path, c.health, rec.Code, rec.Body, c.code, c.text)
		}
	}
}

func TestAPIAnswersTheSnapshot(t *testing.T) {
	want := statustest.Sample(time.Date(2026, 7, 22, 14, 0, 0, 0, time.UTC))
	rec := statustest.Get(New(Config{Source: statustest.Fixed(want), Health: standby}), "/api/v1/status")
	if rec.Code != 200 || rec.Header().Get("Content-Type") != "application/json; charset=utf-8" {
		t.Fatalf("%d %v", rec.Code, rec.Header())
	}
	got := apiState(t, rec)
	if got.Leader == nil || *got.Leader != *want.Leader || len(got.Jobs) != len(want.Jobs) ||
		got.Jobs[2].LastRun.Error != state.PublicError(want.Jobs[2].LastRun.Error) { // as seen from another host
		t.Errorf("got %+v", got)
	}
	for _, key := range []string{`"node_id"`, `"lease_left_seconds": 8.12`, `"config_hash"`, `"last_seen_seconds_ago"`, `"schedule_words"`,
		`"consecutive_failures": 3`, `"lag_seconds": 1.4`, `"duration_seconds"`, `"next_run"`, `"age_seconds": 0`} {
		if !strings.Contains(rec.Body.String(), key) {
			t.Errorf("no %s in the answer", key)
		}
	}
}

func TestAPIListsAreNeverNull(t *testing.T) {
	body := statustest.Get(New(Config{Source: statustest.Fixed(diagnose.Snapshot{NodeID: "db1"}), Health: standby}),
		"/api/v1/status").Body.String()
	for _, want := range []string{`"nodes": []`, `"jobs": []`, `"events": []`, `"leader": null`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
}

func TestEverythingElseThanReadingIsRefused(t *testing.T) {
	h := New(Config{Source: statustest.Fixed(statustest.Sample(time.Now())), Health: standby, Metrics: metrics.New("v", nil)})
	for _, path := range []string{"/", "/api/v1/status", "/-/healthy", "/-/ready", "/-/leader", "/metrics", "/nothing"} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW"} {
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, httptest.NewRequest(method, path, strings.NewReader("x")))
			if rec.Code != http.StatusMethodNotAllowed || rec.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d, Allow %q", method, path, rec.Code, rec.Header().Get("Allow"))
			}
		}
	}
	for path, code := range map[string]int{"/nothing": 404, "/api/v1/": 404, "/index.html": 404, "/metrics": 200} {
		if rec := statustest.Get(h, path); rec.Code != code {
			t.Errorf("GET %s: %d, want %d", path, rec.Code, code)
		}
	}
}

func TestEveryAnswerCarriesTheSecurityHeaders(t *testing.T) {
	h := New(Config{Source: statustest.Fixed(statustest.Sample(time.Now())), Health: standby, Metrics: metrics.New("v", nil)})
	for _, path := range []string{"/", "/api/v1/status", "/-/leader", "/metrics", "/nothing"} {
		header := statustest.Get(h, path).Header()
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "Cache-Control": "no-store",
		} {
			if header.Get(name) != want {
				t.Errorf("%s: %s is %q, want %q", path, name, header.Get(name), want)
			}
		}
		policy := header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'"} {
			if !strings.Contains(policy, want) || strings.Contains(policy, "unsafe") {
				t.Errorf("%s: policy %q lacks %q, or allows what is unsafe", path, policy, want)
			}
		}
	}
}

func TestForeignHostNamesAreRefusedOnLoopback(t *testing.T) {
	server := httptest.NewServer(New(Config{Source: statustest.Fixed(statustest.Sample(time.Now())), Health: standby,
		Hosts: []string{"Baton.example.com"}}))
	defer server.Close()
	for host, code := range map[string]int{
		"localhost": 200, "LOCALHOST:9747": 200, "localhost.": 200, "db.localhost:80": 200, "127.0.0.1:9747": 200, "127.0.1.1": 200,
		"[::1]:9747": 200, "[::1]": 200, "10.0.0.7": 200, "baton.example.com:443": 200,
		"evil.example": 421, "evil.example:9747": 421, "localhost.evil.example": 421,
		"127.0.0.1.evil.example:9747": 421, "evillocalhost": 421,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/v1/status", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != code {
			t.Errorf("Host %q: %d, want %d", host, resp.StatusCode, code)
		}
	}
}

func TestHangingSourceIsAnsweredWithTheLastKnownState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unblock := make(chan struct{})
		var calls atomic.Int32
		source := func(context.Context) (diagnose.Snapshot, error) { // ignores its ctx, like a bad driver
			if calls.Add(1) > 1 {
				<-unblock
			}
			return statustest.Sample(time.Now()), nil
		}
		h := New(Config{Source: source, Health: standby})
		if s := apiState(t, statustest.Get(h, "/api/v1/status")); s.Error != "" || s.Role != diagnose.RoleStandby {
			t.Fatalf("while all is well: %+v", s)
		}
		time.Sleep(4 * time.Second)
		for range 20 { // far more requests than a hanging Redis could handle
			began := time.Now()
			rec := statustest.Get(h, "/api/v1/status")
			if took := time.Since(began); took > 2*time.Second {
				t.Fatalf("answered after %s", took)
			}
			s := apiState(t, rec)
			if rec.Code != 200 || (s.Leader == nil) == (s.LastLeader == nil) || s.Error == "" || s.Redis.OK ||
				s.Role != diagnose.RoleConnecting || s.Age < 4000*text.Millisecond {
				t.Fatalf("%d %+v", rec.Code, s)
			}
		}
		page := statustest.Get(h, "/").Body.String()
		for _, want := range []string{"Leader not known", "db1 led when last seen, and its lease has run out since",
			"Redis: Does not answer</b> <span>no answer within 1.5 s", "What you see is 3", `value="0"`} {
			if !strings.Contains(page, want) {
				t.Errorf("page lacks %q", want)
			}
		}
		if n := calls.Load(); n != 2 {
			t.Errorf("the hanging source was asked %d times, want once beside the first", n)
		}
		for _, path := range []string{"/-/healthy", "/-/ready"} {
			began := time.Now()
			if rec := statustest.Get(h, path); rec.Code != 200 || time.Since(began) > 0 {
				t.Errorf("%s waits for the source, or fails with it: %d", path, rec.Code)
			}
		}
		close(unblock)
		synctest.Wait()
		if s := apiState(t, statustest.Get(h, "/api/v1/status")); s.Error != "" || s.Age != 0 {
			t.Errorf("after the source came back: %+v", s)
		}
	})
}

func TestSourceThatNeverAnsweredLeavesWhatTheNodeKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := func(ctx context.Context) (diagnose.Snapshot, error) {
			<-ctx.Done()
			return diagnose.Snapshot{}, ctx.Err()
		}
		h := New(Config{Source: source, NodeID: "db7", Version: "1.2.3", Health: func() Health { return Health{Leading: true} }})
		rec := statustest.Get(h, "/api/v1/status")
		s := apiState(t, rec)
		if rec.Code != 503 || s.NodeID != "db7" || s.Version != "1.2.3" || s.Role != diagnose.RoleLeading || s.Error == "" {
			t.Errorf("%d %+v", rec.Code, s)
		}
		rec = statustest.Get(h, "/")
		if rec.Code != 200 || !strings.Contains(rec.Body.String(), "Leader not known yet") ||
			strings.Contains(rec.Body.String(), "No job is configured") {
			t.Errorf("%d\n%s", rec.Code, rec.Body)
		}
		time.Sleep(state.SourceTimeout)
	})
}

func TestFailingSourceKeepsSharedStateAndShowsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fail error
		source := func(context.Context) (diagnose.Snapshot, error) {
			if fail != nil {
				return diagnose.Snapshot{NodeID: "db2", Role: diagnose.RoleConnecting,
					Redis: diagnose.Redis{Host: "redis:6379", Error: "connection refused"}}, fail
			}
			return statustest.Sample(time.Now()), nil
		}
		h := New(Config{Source: source, Health: standby})
		statustest.Get(h, "/")
		fail = errors.New("Redis at redis:6379 refuses connections")
		time.Sleep(time.Second)
		s := apiState(t, statustest.Get(h, "/api/v1/status"))
		if s.Error != fail.Error() || s.Redis.Error != "connection refused" || s.Redis.OK || s.Leader == nil ||
			len(s.Jobs) != 4 || s.Age != 1000*text.Millisecond || s.Version != "0.1.0" {
			t.Errorf("%+v", s)
		}
	})
}

func TestPanicOfASourceIsAnErrorOnThePage(t *testing.T) {
	h := New(Config{Source: func(context.Context) (diagnose.Snapshot, error) { panic("nil map") }, Health: standby, NodeID: "db1"})
	if s := apiState(t, statustest.Get(h, "/api/v1/status")); !strings.Contains(s.Error, "nil map") {
		t.Errorf("%+v", s)
	}
}

func TestManyReadersShareOneReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		h := New(Config{Health: standby, Source: func(context.Context) (diagnose.Snapshot, error) {
			calls++
			return statustest.Sample(time.Now()), nil
		}})
		for range 100 { // 100 requests in one second
			statustest.Get(h, "/")
			time.Sleep(10 * time.Millisecond)
		}
		if calls > 2 {
			t.Errorf("100 requests in a second read the state %d times, want 2", calls)
		}
	})
}

func TestTooManyRequestsAreTurnedAwayButHealthIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Config{Health: standby, Source: func(ctx context.Context) (diagnose.Snapshot, error) {
			<-ctx.Done()
			return diagnose.Snapshot{}, ctx.Err()
		}})
		codes := make(chan int, maxRequests)
		for range maxRequests {
			go func() { codes <- statustest.Get(h, "/").Code }()
		}
		synctest.Wait()
		rec := statustest.Get(h, "/")
		if rec.Code != 503 || rec.Header().Get("Retry-After") == "" {
			t.Errorf("request %d: %d", maxRequests+1, rec.Code)
		}
		if rec := statustest.Get(h, "/-/healthy"); rec.Code != 200 {
			t.Errorf("health: %d", rec.Code)
		}
		for range maxRequests {
			if code := <-codes; code != 200 {
				t.Errorf("a request within the limit: %d", code)
			}
		}
		time.Sleep(state.SourceTimeout)
	})
}

func TestHeadHasTheHeadersAndNoBody(t *testing.T) {
	server := httptest.NewServer(New(Config{Source: statustest.Fixed(statustest.Sample(time.Now())), Health: standby}))
	defer server.Close()
	for _, path := range []string{"/", "/api/v1/status", "/-/ready"} {
		resp, err := http.Head(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		n, err := fmt.Fscan(resp.Body, new(string))
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK || n != 0 || err == nil || resp.Header.Get("Content-Type") == "" {
			t.Errorf("HEAD %s: %d, %d, %v", path, resp.StatusCode, n, resp.Header)
		}
	}
}
