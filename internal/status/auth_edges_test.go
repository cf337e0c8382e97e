package status

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	recorder "go.uber.org/zap/zaptest/observer"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/status/auth"
	"baton/internal/status/statustest"
	"baton/internal/status/web"
)

// TestGuessersAreCountedByNetworkAndNotWithoutEnd checks that an attacker who uses a thousand addresses, or a whole network, gets no more
// attempts than from one address, and does not fill the memory.
func TestGuessersAreCountedByNetworkAndNotWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := guarded(t)
		guess := func(address, token string) (code int, waited time.Duration) {
			r := from(httptest.NewRequest(http.MethodPost, "http://localhost:9747/api/v1/resume", nil), loopbackAddr)
			r.RemoteAddr = address
			r.Header.Set("Authorization", "Bearer "+token)
			rec, began := httptest.NewRecorder(), time.Now()
			s.ServeHTTP(rec, r)
			return rec.Code, time.Since(began)
		}
		for i := range auth.FreeFailures {
			guess(fmt.Sprintf("[2001:db8:0:1::%x]:1", i+1), "wrong") // addresses of one customer
		}
		if code, waited := guess("[2001:db8:0:1:ffff::1]:1", "wrong"); code != 401 || waited != 0 {
			t.Errorf("the first turn is at once: %d after %v", code, waited)
		}
		if _, waited := guess("[2001:db8:0:1:ffff::2]:1", "wrong"); waited != auth.TurnEvery {
			t.Errorf("the next one from that network waited %v, want %v", waited, auth.TurnEvery)
		}
		if _, waited := guess("[2001:db8:0:2::1]:1", "wrong"); waited != 0 {
			t.Errorf("another network's waited %v", waited)
		}
		many := func(network string) {
			for i := range auth.MostGuessers + 10 {
				if _, waited := guess(fmt.Sprintf("%s.%d.%d:1", network, i/250, i%250), "wrong"); waited != 0 {
					t.Fatalf("address %d of %s waited %v", i, network, waited)
				}
			}
		}
		many("10.1")
		if n := s.auth.Suspects(); n != auth.MostGuessers+1 {
			t.Errorf("%d guessers are remembered, and those beyond are not counted together", n)
		}
		if _, waited := guess("[2001:db8:0:1:ffff::3]:1", "wrong"); waited == 0 {
			t.Error("whoever guesses is forgotten for all who come after")
		}
		time.Sleep(3 * auth.FreeFailures * time.Second)
		if many("10.2"); s.auth.Suspects() > auth.MostGuessers+1 {
			t.Errorf("%d guessers are remembered", s.auth.Suspects())
		}
		// The count of wrong tokens drops every second, and is never higher than twice the number of free attempts.
		time.Sleep(3 * auth.FreeFailures * time.Second)
		for range 3 * auth.FreeFailures {
			guess("192.0.2.9:1", "wrong")
		}
		time.Sleep((auth.FreeFailures + 1) * time.Second)
		if _, waited := guess("192.0.2.9:1", secretToken); waited != 0 {
			t.Errorf("after %d s the right token waited %v", auth.FreeFailures+1, waited)
		}
	})
}

func TestAQueueOfGuessersHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := guarded(t)
		for range auth.FreeFailures {
			send(s, "/api/v1/pause", "", bearer("wrong")...)
		}
		codes, hung := make(chan int, 400), 0
		for range cap(codes) {
			go func() { codes <- send(s, "/api/v1/pause", "", bearer("wrong")...).Code }()
		}
		synctest.Wait()
		for len(codes) > 0 { // the requests that were answered without a wait
			if code := <-codes; code == http.StatusTooManyRequests {
				hung++
			}
		}
		if most := int(auth.LongestQueue/auth.TurnEvery) + 2; hung < cap(codes)-most {
			t.Errorf("%d of %d were turned away, and no more than %d should wait", hung, cap(codes), most)
		}
		rec := send(s, "/api/v1/pause", "", bearer("wrong")...)
		if rec.Code != 429 || rec.Header().Get("Retry-After") == "" || !strings.Contains(rec.Body.String(), "admin socket") {
			t.Errorf("%d %q %s", rec.Code, rec.Header().Get("Retry-After"), rec.Body)
		}
		time.Sleep(auth.LongestQueue + time.Second)
	})
}

func TestATokenThatCannotBeReadIsToldOnceAndIsGoodAgainWhenItCan(t *testing.T) {
	core, logs := recorder.New(zapcore.ErrorLevel)
	file := tokenFile(t, secretToken)
	s := New(Config{Source: statustest.Fixed(diagnose.Snapshot{}), Health: standby, Do: (&given{}).do, TokenFile: file,
		Logger: zap.New(core)})
	h := door(s)
	cookies, csrf := enterDoor(t, h)
	if err := os.Rename(file, file+".away"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if rec := send(s, "/api/v1/resume", "", bearer(secretToken)...); rec.Code != 503 || rec.Header().Get("Retry-After") == "" {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
	}
	if rec := browse(h, "POST", "/test/do", url.Values{"csrf": {csrf}}, cookies); rec.Code != 401 {
		t.Errorf("a session while the token is away: %d", rec.Code)
	}
	if logs.Len() != 1 {
		t.Errorf("told %d times", logs.Len())
	}
	if err := os.Rename(file+".away", file); err != nil {
		t.Fatal(err)
	}
	if rec := send(s, "/api/v1/resume", "", bearer(secretToken)...); rec.Code != 200 {
		t.Errorf("the file is back: %d %s", rec.Code, rec.Body)
	}
	if rec := browse(h, "POST", "/test/do", url.Values{"csrf": {csrf}}, cookies); rec.Code != 401 {
		t.Errorf("a session of before the token was away: %d", rec.Code)
	}
	// The new file has the same length and time as the old file, for example because it was put in its place.
	cookies, csrf = enterDoor(t, h)
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Repeat("f", len(secretToken))
	if err := os.WriteFile(file+".new", []byte(other+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file+".new", info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	if rec := browse(h, "POST", "/test/do", url.Values{"csrf": {csrf}}, cookies); rec.Code != 401 || send(s,
		"/api/v1/resume", "", bearer(other)...).Code != 200 {
		t.Errorf("the token was replaced, and a session of the old one gives orders: %d", rec.Code)
	}
	// If the file was only touched and the token is unchanged, no session ends.

	rec := browse(h, "POST", "/test/in", url.Values{"token": {other}}, nil)
	cookies = rec.Result().Cookies()
	csrf = browse(h, "GET", "/test/csrf", nil, cookies).Body.String()
	if err := os.Chtimes(file, time.Now(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if rec := browse(h, "POST", "/test/do", url.Values{"csrf": {csrf}}, cookies); rec.Code != 200 {
		t.Errorf("the file was touched: %d", rec.Code)
	}
}

func TestNobodySignsInWhereItIsNotForBrowsersOrNotSafe(t *testing.T) {
	with, _ := guarded(t)
	without := New(Config{Source: statustest.Fixed(diagnose.Snapshot{}), Health: standby})
	in := func(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec
	}
	form := func() *strings.Reader { return strings.NewReader("token=" + secretToken) }
	h := door(with)
	for name, c := range map[string]struct {
		h    http.Handler
		r    *http.Request
		says string
	}{
		"no token": {door(without), from(httptest.NewRequest(http.MethodPost, "http://localhost:9747/test/in",
			form()), loopbackAddr), "http.token_file"},
		"over a network": {h, from(httptest.NewRequest(http.MethodPost, "http://10.0.0.7:9747/test/in", form()), networkAddr), "https"},
	} {
		if rec := in(c.h, c.r); rec.Code != 403 || len(rec.Result().Cookies()) > 0 || !strings.Contains(rec.Body.String(), c.says) {
			t.Errorf("%s: %d %s %v", name, rec.Code, rec.Body, rec.Result().Cookies())
		}
	}
	for name, c := range map[string]struct {
		s    *Server
		r    *http.Request
		want bool
	}{
		"loopback": {with, from(httptest.NewRequest(http.MethodGet, "/", nil), loopbackAddr), true}, "network": {with,
			from(httptest.NewRequest(http.MethodGet, "/", nil), networkAddr), false},
		"socket": {with, from(httptest.NewRequest(http.MethodGet, "/", nil), socketAddr), false}, "no token": {without,
			from(httptest.NewRequest(http.MethodGet, "/", nil), loopbackAddr), false},
	} {
		if got := c.s.auth.Enabled(c.r); got != c.want {
			t.Errorf("%s: one can sign in: %t", name, got)
		}
	}
	cookies, _ := enterDoor(t, h)
	if cookies[0].MaxAge != int(auth.SessionFor.Seconds()) {
		t.Errorf("the cookie stays for %d s", cookies[0].MaxAge)
	}
	// A cookie that is sent over a connection that others can read is not accepted.
	r := from(httptest.NewRequest(http.MethodGet, "http://10.0.0.7:9747/test/csrf", nil), networkAddr)
	r.AddCookie(cookies[0])
	rec := httptest.NewRecorder()
	if h.ServeHTTP(rec, r); rec.Body.Len() > 0 {
		t.Error("a session goes on over a connection that others read")
	}
	if rec := browse(h, "POST", "/test/out", nil, cookies); len(rec.Result().Cookies()) != 1 || rec.Result().Cookies()[0].MaxAge >= 0 {
		t.Errorf("signed out, the browser keeps %v", rec.Result().Cookies())
	}
	if with.auth.SignedInNow() != 0 {
		t.Errorf("%d sessions are left", with.auth.SignedInNow())
	}
}

func TestSessionsThatAreOverMakeRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := guarded(t)
		h := door(s)
		for range auth.MaxSessions / 2 {
			enterDoor(t, h)
		}
		time.Sleep(auth.SessionIdle + time.Second)
		if enterDoor(t, h); s.auth.SignedInNow() != 1 {
			t.Errorf("%d sessions, of which one is good", s.auth.SignedInNow())
		}
	})
}

// TestAStreamEndsWithItsSession checks that a stream of a page or of the state ends when the session of its reader ends.
func TestAStreamEndsWithItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &given{}
		s := New(Config{Source: statustest.Fixed(statustest.Sample(time.Now())), Health: standby, Do: g.do,
			TokenFile: tokenFile(t, secretToken)})
		h := door(s)
		cookies, csrf := enterDoor(t, h)
		ended := make(chan string, 3)
		for _, path := range []string{"/live?page=%2F", "/api/v1/stream"} {
			r := from(httptest.NewRequest(http.MethodGet, "http://localhost:9747"+path, nil), loopbackAddr)
			r.AddCookie(cookies[0])
			go func() {
				h.ServeHTTP(statustest.NewSlowReader(nil), r)
				ended <- path
			}()
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if len(ended) != 0 {
			t.Fatalf("%s ended early", <-ended)
		}
		browse(h, "POST", "/test/out", url.Values{"csrf": {csrf}}, cookies)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if len(ended) != 2 {
			t.Errorf("%d of 2 streams have ended with the session", len(ended))
		}
		s.watch.End()
		time.Sleep(time.Minute)
	})
}

// TestWithoutATokenNobodyIsTurnedAwayForWhatTheyShow checks that a node without a token ignores credentials in a request, because a proxy
// may ask for its own password and pass it on.
func TestWithoutATokenNobodyIsTurnedAwayForWhatTheyShow(t *testing.T) {
	h := New(Config{Source: statustest.Fixed(statustest.Sample(time.Now())), Health: standby})
	for _, shown := range []string{"Basic dXNlcjpwYXNz", "Bearer " + secretToken} {
		r := from(httptest.NewRequest(http.MethodGet, "http://localhost:9747/api/v1/status", nil), loopbackAddr)
		r.Header.Set("Authorization", shown)
		rec := httptest.NewRecorder()
		if h.ServeHTTP(rec, r); rec.Code != 200 {
			t.Errorf("%s: %d %s", shown, rec.Code, rec.Body)
		}
	}
}

func TestTheLogTellsFromWhereAnOrderCame(t *testing.T) {
	core, logs := recorder.New(zapcore.InfoLevel)
	s := New(Config{Source: statustest.Fixed(diagnose.Snapshot{}), Health: standby, Do: (&given{}).do,
		TokenFile: tokenFile(t, secretToken), Logger: zap.New(core)})
	send(s, "/api/v1/resume", "", bearer(secretToken)...)
	send(s, "/api/v1/resume", "", bearer("wrong")...)
	all := logs.All()
	if len(all) != 2 || all[0].ContextMap()["address"] != "192.0.2.1:1234" ||
		all[1].ContextMap()["address"] != "192.0.2.1:1234" || all[1].Level != zapcore.WarnLevel {
		t.Errorf("%+v", all)
	}
}

func TestWrongTokensDoNotFloodTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := recorder.New(zapcore.InfoLevel)
		s := New(Config{Source: statustest.Fixed(diagnose.Snapshot{}), Health: standby, Do: (&given{}).do,
			TokenFile: tokenFile(t, secretToken), Logger: zap.New(core)})
		for range 100 {
			for _, address := range []string{"192.0.2.1:1", "192.0.2.1:2", "[2001:db8:0:2::1]:1"} {
				r := from(httptest.NewRequest(http.MethodPost, "http://localhost:9747/api/v1/resume", nil), loopbackAddr)
				r.RemoteAddr = address
				r.Header.Set("Authorization", "Bearer wrong")
				s.ServeHTTP(httptest.NewRecorder(), r)
			}
			time.Sleep(300 * time.Millisecond)
		}
		time.Sleep(2 * time.Minute)
		told, lines := map[string]int64{}, logs.All()
		for _, line := range lines {
			count, _ := line.ContextMap()["count"].(int64)
			address, _ := line.ContextMap()["address"].(string)
			told[web.NetworkOf(address).String()] += count
		}
		if len(lines) > 2*2 || told["192.0.2.1/32"] != 200 || told["2001:db8:0:2::/64"] != 100 {
			t.Errorf("%d lines tell of %v refusals", len(lines), told)
		}
	})
}

// TestTheLimitsAreThoseThatAreDocumented checks that the limits in the documentation are the limits in the code.
func TestTheLimitsAreThoseThatAreDocumented(t *testing.T) {
	for name, said := range map[string][]string{
		"reference/api.md": {
			fmt.Sprintf("After %d wrong tokens", auth.FreeFailures), fmt.Sprintf("%d a second",
				time.Second/auth.TurnEvery), fmt.Sprintf("JSON of at most %d KiB", maxBody>>10),
			fmt.Sprintf("stays signed in for %.0f hours at most", auth.SessionFor.Hours()), "and for one hour after",
		},
		"reference/configuration.md": {fmt.Sprintf("at least %d characters", operate.LeastToken)},
		"security.md": {
			fmt.Sprintf("%d connections at a time", web.MaxConnections),
			fmt.Sprintf("%d may wait for their clients", web.MaxIdle), fmt.Sprintf("%d from one address", web.MaxIdleOfOne),
			fmt.Sprintf("waited for at least %d ms", web.DefaultLimits().Connections.Grace.Milliseconds()),
		},
	} {
		text, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		flat := strings.Join(strings.Fields(string(text)), " ")
		for _, words := range said {
			if !strings.Contains(flat, words) {
				t.Errorf("docs/%s has no %q", name, words)
			}
		}
	}
	if auth.SessionIdle != time.Hour {
		t.Errorf("a session that is not used lasts %v", auth.SessionIdle)
	}
}
