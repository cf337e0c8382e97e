package status

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/status/auth"
	"baton/internal/status/statustest"
	"baton/internal/status/web"
)

const secretToken = "0123456789abcdef0123456789abcdef"

// given contains the orders that were carried out.
type given struct {
	mu     sync.Mutex
	orders []operate.Order
}

func (g *given) do(_ context.Context, o operate.Order) (operate.Outcome, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.orders = append(g.orders, o)
	return operate.Outcome{Text: "done"}, nil
}

func (g *given) last() operate.Order {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.orders) == 0 {
		return operate.Order{}
	}
	return g.orders[len(g.orders)-1]
}

func (g *given) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.orders)
}

// tokenFile writes a token to a new file, and returns the path.
func tokenFile(t *testing.T, token string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// guarded returns a server with a token, and the orders that it has carried out.
func guarded(t *testing.T) (*Server, *given) {
	t.Helper()
	g := &given{}
	return New(Config{Source: statustest.Fixed(statustest.Sample(time.Now())), Health: standby, Do: g.do,
		TokenFile: tokenFile(t, secretToken)}), g
}

// from returns r as a request that came in on a connection to the address local.
func from(r *http.Request, local net.Addr) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
}

var (
	loopbackAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9747}
	networkAddr  = &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 9747}
	socketAddr   = &net.UnixAddr{Name: "/run/baton/admin.sock", Net: "unix"}
)

// send gives an order over loopback. headers are alternating names and values.
func send(h http.Handler, path, body string, headers ...string) *httptest.ResponseRecorder {
	return sendOn(h, loopbackAddr, path, body, headers...)
}

func sendOn(h http.Handler, local net.Addr, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := from(httptest.NewRequest(http.MethodPost, "http://localhost:9747"+path, strings.NewReader(body)), local)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}

func bearer(token string) []string { return []string{"Authorization", "Bearer " + token} }

func TestAnOrderTakesTheTokenWhereNobodyCanReadIt(t *testing.T) {
	s, g := guarded(t)
	for _, c := range []struct {
		name    string
		local   net.Addr
		headers []string
		code    int
		says    string
	}{
		{"nothing", loopbackAddr, nil, 401, "Authorization: Bearer"},
		{"wrong", loopbackAddr, bearer(secretToken + "0"), 401, "not the token"},
		{"empty", loopbackAddr, bearer(""), 401, "not the token"},
		{"another scheme", loopbackAddr, []string{"Authorization", "Basic " + secretToken}, 401, "Bearer TOKEN"},
		{"right", loopbackAddr, bearer(secretToken), 200, "done"},
		{"right, over a network", networkAddr, bearer(secretToken), 403, "https"},
		{"wrong, over a network", networkAddr, bearer("x"), 403, "https"},
		{"nothing, over a network", networkAddr, nil, 403, "https"},
		{"from another site", loopbackAddr, append(bearer(secretToken), "Sec-Fetch-Site", "cross-site"), 403, "page of this node"},
		{"from another origin", loopbackAddr, append(bearer(secretToken), "Origin", "http://evil.example"), 403, "page of this node"},
		{"the admin socket", socketAddr, nil, 200, "done"},
	} {
		before := g.count()
		rec := sendOn(s, c.local, "/api/v1/jobs/report/run", `{"by": "alice", "reason": "late"}`, c.headers...)
		if rec.Code != c.code || !strings.Contains(rec.Body.String(), c.says) {
			t.Errorf("%s: %d %s, want %d with %q", c.name, rec.Code, rec.Body, c.code, c.says)
		}
		if did := g.count() > before; did != (c.code == 200) {
			t.Errorf("%s: the order was carried out: %t", c.name, did)
		}
		if c.code == 401 && rec.Header().Get("WWW-Authenticate") == "" {
			t.Errorf("%s: 401 does not say how", c.name)
		}
	}
	if o := g.last(); o.Signature() != "by alice via the admin socket: late" || o.Job != "report" || o.Kind != operate.KindRun {
		t.Errorf("%+v", o)
	}
	none := New(Config{Source: statustest.Fixed(diagnose.Snapshot{}), Health: standby, Do: g.do})
	before := g.count()
	if rec := send(none, "/api/v1/pause", "", bearer(secretToken)...); rec.Code != 403 ||
		!strings.Contains(rec.Body.String(), "http.token_file") || g.count() != before {
		t.Errorf("without a token file: %d %s", rec.Code, rec.Body)
	}
}

// browse sends a request as a browser with the given cookies.
func browse(h http.Handler, method, path string, form url.Values, cookies []*http.Cookie, headers ...string) *httptest.ResponseRecorder {
	r := from(httptest.NewRequest(method, "http://localhost:9747"+path, strings.NewReader(form.Encode())), loopbackAddr)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	for _, c := range cookies {
		r.AddCookie(c)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}

// door returns a handler that signs in, shows data and accepts orders, behind the checks of a server.
func door(s *Server) http.Handler {
	s.mux.HandleFunc("POST /test/in", func(w http.ResponseWriter, r *http.Request) {
		if err := s.auth.SignIn(w, r, r.PostFormValue("token")); err != nil {
			http.Error(w, err.Error(), web.Refused(err).Code)
		}
	})
	s.mux.HandleFunc("POST /test/out", func(w http.ResponseWriter, r *http.Request) { s.auth.SignOut(w, r) })
	s.mux.HandleFunc("GET /test/csrf", func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, s.auth.CSRF(r)) })
	s.mux.HandleFunc("POST /test/do", func(w http.ResponseWriter, r *http.Request) {
		if err := s.auth.MayOrder(r); err != nil {
			http.Error(w, err.Error(), web.Refused(err).Code)
		}
	})
	return s
}

func enterDoor(t *testing.T, h http.Handler) (cookies []*http.Cookie, csrf string) {
	t.Helper()
	rec := browse(h, "POST", "/test/in", url.Values{"token": {secretToken}}, nil)
	if rec.Code != 200 {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	cookies = rec.Result().Cookies()
	return cookies, browse(h, "GET", "/test/csrf", nil, cookies).Body.String()
}

func TestABrowserThatHasSignedInOrdersFromItsOwnPageOnly(t *testing.T) {
	s, _ := guarded(t)
	h := door(s)
	cookies, csrf := enterDoor(t, h)
	if c := cookies[0]; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Secure ||
		c.Name != "baton-9747" || len(c.Value) < 26 {
		t.Errorf("cookie %+v", c)
	}
	form := url.Values{"csrf": {csrf}}
	for _, c := range []struct {
		name    string
		form    url.Values
		cookies []*http.Cookie
		headers []string
		code    int
	}{
		{"as the page does", form, cookies, nil, 200},
		{"by a script of the page", nil, cookies, []string{"X-Baton-Csrf", csrf}, 200},
		{"a browser that tells the origin alone", form, cookies, []string{"Sec-Fetch-Site", "", "Origin", "http://localhost:9747"}, 200},
		{"nobody signed in", form, nil, nil, 401},
		{"another cookie", form, []*http.Cookie{{Name: "baton-9747", Value: strings.Repeat("0", 64)}}, nil, 401},
		{"no CSRF token", nil, cookies, nil, 403},
		{"another CSRF token", url.Values{"csrf": {strings.Repeat("0", 64)}}, cookies, nil, 403},
		{"in the query", nil, cookies, []string{"X-Test", "query"}, 403},
		{"from another site", form, cookies, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"from another port", form, cookies, []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"from a bookmark", form, cookies, []string{"Sec-Fetch-Site", "none"}, 403},
		{"from another origin", form, cookies, []string{"Sec-Fetch-Site", "", "Origin", "http://localhost:8080"}, 403},
		{"from a sandbox", form, cookies, []string{"Sec-Fetch-Site", "", "Origin", "null"}, 403},
		{"from what says nothing", form, cookies, []string{"Sec-Fetch-Site", ""}, 403},
	} {
		path := "/test/do"
		if slices.Contains(c.headers, "query") {
			path += "?csrf=" + csrf
		}
		if rec := browse(h, "POST", path, c.form, c.cookies, c.headers...); rec.Code != c.code {
			t.Errorf("%s: %d %s, want %d", c.name, rec.Code, rec.Body, c.code)
		}
	}
	if rec := browse(h, "POST", "/test/in", url.Values{"token": {secretToken}}, nil, "Sec-Fetch-Site",
		"cross-site"); rec.Code != 403 || len(rec.Result().Cookies()) > 0 {
		t.Errorf("signed in from elsewhere: %d", rec.Code)
	}
	browse(h, "POST", "/test/out", form, cookies)
	if rec := browse(h, "POST", "/test/do", form, cookies); rec.Code != 401 {
		t.Errorf("after signing out: %d", rec.Code)
	}
}

func TestOverTLSTheCookieIsTheHostsAlone(t *testing.T) {
	s, _ := guarded(t)
	h := door(s)
	r := from(httptest.NewRequest(http.MethodPost, "https://db1.example/test/in", strings.NewReader("token="+secretToken)), networkAddr)
	r.TLS = &tls.ConnectionState{}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "https://db1.example")
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	if c := rec.Result().Cookies(); rec.Code != 200 || len(c) != 1 || !c[0].Secure || c[0].Name != "__Host-baton-9747" {
		t.Errorf("%d %v", rec.Code, c)
	}
}

func TestAProxyMayAskForAPasswordOfItsOwn(t *testing.T) {
	s, g := guarded(t)
	password := []string{"Authorization", "Basic b3BzOnNlY3JldA=="}
	r := from(httptest.NewRequest(http.MethodGet, "http://localhost:9747/", nil), loopbackAddr)
	r.Header.Set(password[0], password[1])
	rec := httptest.NewRecorder()
	if s.ServeHTTP(rec, r); rec.Code != http.StatusOK {
		t.Errorf("the page: %d %s", rec.Code, rec.Body)
	}
	if rec := send(s, "/api/v1/pause", "", password...); rec.Code != http.StatusUnauthorized || g.count() != 0 {
		t.Errorf("an order: %d %s", rec.Code, rec.Body)
	}
	h := door(s)
	cookies, csrf := enterDoor(t, h)
	if rec := browse(h, "POST", "/test/do", url.Values{"csrf": {csrf}}, cookies, password...); rec.Code != http.StatusOK {
		t.Errorf("an order of who has signed in: %d %s", rec.Code, rec.Body)
	}
}

func TestSessionsEndWithTheTokenAndWithTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := guarded(t)
		h := door(s)
		in := func(cookies []*http.Cookie, csrf string) bool {
			return browse(h, "POST", "/test/do", url.Values{"csrf": {csrf}}, cookies).Code == 200
		}
		cookies, csrf := enterDoor(t, h)
		time.Sleep(auth.SessionIdle - time.Minute)
		if !in(cookies, csrf) {
			t.Error("it ended early")
		}
		time.Sleep(auth.SessionIdle + time.Second)
		if in(cookies, csrf) {
			t.Error("an idle session goes on")
		}
		cookies, csrf = enterDoor(t, h)
		for began := time.Now(); time.Since(began) < auth.SessionFor; time.Sleep(auth.SessionIdle / 2) {
			if !in(cookies, csrf) {
				t.Fatal("it ended early")
			}
		}
		time.Sleep(time.Second)
		if in(cookies, csrf) {
			t.Error("an old session goes on")
		}
		first, firstCSRF := enterDoor(t, h)
		for range auth.MaxSessions {
			time.Sleep(time.Millisecond)
			cookies, csrf = enterDoor(t, h)
		}
		if in(first, firstCSRF) || !in(cookies, csrf) || s.auth.SignedInNow() != auth.MaxSessions {
			t.Errorf("%d sessions", s.auth.SignedInNow())
		}
		if err := os.WriteFile(s.cfg.TokenFile, []byte("another-token-of-32-characters-x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if in(cookies, csrf) || send(h, "/api/v1/resume", "", bearer(secretToken)...).Code != 401 {
			t.Error("the old token and its sessions are good still")
		}
		if rec := send(h, "/api/v1/resume", "", bearer("another-token-of-32-characters-x")...); rec.Code != 200 {
			t.Errorf("the new token: %d %s", rec.Code, rec.Body)
		}
		if err := os.Remove(s.cfg.TokenFile); err != nil {
			t.Fatal(err)
		}
		if rec := send(h, "/api/v1/resume", "", bearer("another-token-of-32-characters-x")...); rec.Code != 503 {
			t.Errorf("without the file: %d %s", rec.Code, rec.Body)
		}
		if rec := send(h, "/api/v1/resume", "", bearer("")...); rec.Code == 200 {
			t.Errorf("an empty token is good while there is none")
		}
	})
}

func TestATokenMustBeHardToGuessAndOneLine(t *testing.T) {
	for token, want := range map[string]string{
		"short": "has 5 characters", strings.Repeat("x", 15): "at least 16", "": "has 0 characters",
		"two\nlines-of-16-characters": "one line", "with blank 0123456789": "one line", "ü" + secretToken: "one line",
		strings.Repeat("x", 1025): "more than 1024", secretToken: "", secretToken + "\r": "",
	} {
		err := auth.CheckTokens(tokenFile(t, token), "")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.20q: %v, want %q", token, err, want)
		}
		if err != nil && len(token) > 4 && strings.Contains(err.Error(), token) {
			t.Errorf("the error tells the token: %v", err)
		}
	}
	if err := auth.CheckTokens("", "/nowhere/token"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	// If both files contained the same token, a caller with the read-only token could give orders.
	orders := tokenFile(t, secretToken)
	err := auth.CheckTokens(orders, tokenFile(t, secretToken+"\n"))
	if err == nil || !strings.Contains(err.Error(), "http.read_token_file: ") || strings.Contains(err.Error(), secretToken) {
		t.Errorf("the same token twice: %v", err)
	}
	if err := auth.CheckTokens(orders, tokenFile(t, readToken)); err != nil {
		t.Error(err)
	}
}

func TestATokenFileThatIsNoFileKeepsNobodyWaiting(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "token")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, t.TempDir(), "/dev/zero"} {
		told := make(chan error, 1)
		go func() { told <- auth.CheckTokens("", path) }()
		if err := statustest.Within(t, told, "CheckToken of "+path); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestGuessingIsSlowAndLocksNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := guarded(t)
		began := time.Now()
		for range auth.FreeFailures {
			send(s, "/api/v1/pause", "", bearer("wrong")...)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the first few took %v", took)
		}
		// A hundred clients guess tokens at the same time, for one minute.
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		var wg sync.WaitGroup
		var mu sync.Mutex
		guesses := map[int]int{}
		for range 100 {
			wg.Go(func() {
				for ctx.Err() == nil {
					code := send(s, "/api/v1/pause", "", bearer("wrong")...).Code
					mu.Lock()
					guesses[code]++
					mu.Unlock()
					time.Sleep(time.Millisecond)
				}
			})
		}
		time.Sleep(20 * time.Second)
		asked := time.Now()
		if rec := send(s, "/api/v1/resume", "", bearer(secretToken)...); rec.Code != 200 {
			t.Errorf("the right token: %d %s", rec.Code, rec.Body)
		}
		if took := time.Since(asked); took > auth.LongestQueue+time.Second {
			t.Errorf("the right token waited %v", took)
		}
		if rec := sendOn(s, socketAddr, "/api/v1/resume", ""); rec.Code != 200 {
			t.Errorf("the admin socket: %d", rec.Code)
		}
		for _, address := range []string{"198.51.100.7:1", "[2001:db8:0:2::1]:1", "[fe80::1%eth0]:1"} {
			asked = time.Now()
			r := from(httptest.NewRequest(http.MethodPost, "http://localhost:9747/api/v1/resume", nil), loopbackAddr)
			r.RemoteAddr = address
			r.Header.Set("Authorization", "Bearer "+secretToken)
			rec := httptest.NewRecorder()
			if s.ServeHTTP(rec, r); rec.Code != 200 || time.Since(asked) > 0 {
				t.Errorf("from %s: %d after %v", address, rec.Code, time.Since(asked))
			}
		}
		wg.Wait()
		if most := int(time.Minute/auth.TurnEvery) + 200; guesses[401] > most || g.count() != 5 {
			t.Errorf("%v guesses in a minute, want %d at most; orders: %d", guesses, most, g.count())
		}
		time.Sleep(3 * auth.FreeFailures * time.Second)
		asked = time.Now()
		send(s, "/api/v1/resume", "", bearer(secretToken)...)
		if time.Since(asked) > 0 {
			t.Error("it is slow although nobody guesses any more")
		}
	})
}

func TestWhatCommandsPrintIsShownToWhoMaySeeIt(t *testing.T) {
	secretText := "the password is hunter2"
	snap := statustest.Sample(time.Now())
	snap.Jobs[2].LastRun.Output, snap.Jobs[2].LastRun.Error = secretText, "exit code 3: "+secretText
	with := New(Config{Source: statustest.Fixed(snap), Health: standby, TokenFile: tokenFile(t, secretToken)})
	without := New(Config{Source: statustest.Fixed(snap), Health: standby})
	for _, c := range []struct {
		name    string
		h       http.Handler
		local   net.Addr
		headers []string
		sees    bool
	}{
		{"token, none sent", with, loopbackAddr, nil, false},
		{"token, sent", with, loopbackAddr, bearer(secretToken), true},
		{"token, over the network", with, networkAddr, nil, false},
		{"token, admin socket", with, socketAddr, nil, true},
		{"no token, loopback", without, loopbackAddr, nil, true},
		{"no token, by a proxy", without, loopbackAddr, []string{"X-Forwarded-For", "10.0.0.1"}, false},
		{"no token, over the network", without, networkAddr, nil, false},
		{"no token, admin socket", without, socketAddr, nil, true},
	} {
		for _, path := range []string{"/api/v1/status", "/api/v1/jobs", "/api/v1/jobs/" + snap.Jobs[2].Name} {
			r := from(httptest.NewRequest(http.MethodGet, "http://localhost:9747"+path, nil), c.local)
			for i := 0; i < len(c.headers); i += 2 {
				r.Header.Set(c.headers[i], c.headers[i+1])
			}
			rec := httptest.NewRecorder()
			c.h.ServeHTTP(rec, r)
			if sees := strings.Contains(rec.Body.String(), secretText); rec.Code != 200 || sees != c.sees {
				t.Errorf("%s: %s: %d, shows it: %t", c.name, path, rec.Code, sees)
			}
			if !strings.Contains(rec.Body.String(), "exit code 3") {
				t.Errorf("%s: %s: not even the kind of the error", c.name, path)
			}
		}
	}
}

func TestABodyThatIsNotAsWantedIsRefusedWithTheReason(t *testing.T) {
	s, g := guarded(t)
	for _, c := range []struct {
		path, body string
		headers    []string
		code       int
		says       string
	}{
		{"/api/v1/jobs/a/run", `{"force": true}`, nil, 200, ""},
		{"/api/v1/jobs/a/run", ``, nil, 200, ""},
		{"/api/v1/jobs/a/run", `{"forced": true}`, nil, 400, `forced`},
		{"/api/v1/jobs/a/run", `{"force": "yes"}`, nil, 400, `force: write a value of type bool`},
		{"/api/v1/jobs/a/run", `{"force": true} {}`, nil, 400, "nothing after it"},
		{"/api/v1/jobs/a/run", `{"force": tru`, nil, 400, "not a valid JSON object"},
		{"/api/v1/jobs/a/run", `[1]`, nil, 400, "array"},
		{"/api/v1/jobs/a/run", `{"by": "` + strings.Repeat("x", maxBody) + `"}`, nil, 413, "65536"},
		{"/api/v1/jobs/a/run", `{}`, []string{"Content-Type", "text/plain"}, 415, "application/json"},
		{"/api/v1/jobs/a/run", `{}`, []string{"Content-Encoding", "gzip"}, 415, "Content-Encoding"},
		{"/api/v1/jobs/a/run?force=true", `{}`, nil, 400, `no parameter`},
		{"/api/v1/jobs/a/pause", `{"for": "2h", "until": "2099-01-01T00:00:00Z"}`, nil, 400, "not both"},
		{"/api/v1/jobs/a/pause", `{"for": "-2h"}`, nil, 400, "duration"},
		{"/api/v1/jobs/a/pause", `{"until": "2001-01-01T00:00:00Z"}`, nil, 422, "not in the future"},
		{"/api/v1/jobs/a/pause", `{"until": "tomorrow"}`, nil, 400, ""},
		{"/api/v1/stepdown", `{"wait": "1000h"}`, nil, 400, "at most"},
		{"/api/v1/dead-letters/drop", `{}`, nil, 400, "send 1 to 500"},
		{"/api/v1/dead-letters/drop", `{"letters": [{"id": "a"}]}`, nil, 400, "letters[0]"},
		{"/api/v1/nothing", `{}`, nil, 405, ""},
		{"/api/v1/status", `{}`, nil, 405, "GET"},
	} {
		before := g.count()
		rec := send(s, c.path, c.body, append(bearer(secretToken), c.headers...)...)
		if rec.Code != c.code || !strings.Contains(rec.Body.String(), c.says) || (g.count() > before) != (c.code == 200) {
			t.Errorf("%s %.60s: %d %s, want %d with %q; carried out: %t", c.path, c.body, rec.Code, rec.Body, c.code,
				c.says, g.count() > before)
		}
		var answer apiFailure
		if err := json.Unmarshal(rec.Body.Bytes(), &answer); err != nil || c.code != 200 && (answer.Error == "" || answer.Code == "") {
			t.Errorf("%s: %v: %s", c.path, err, rec.Body)
		}
	}
	// A name becomes one readable line, regardless of its content.
	send(s, "/api/v1/pause", `{"by": "a\u0000\nlice\u202e", "reason": " x\ty\u001b[2J "}`, bearer(secretToken)...)
	if o := g.last(); o.Signature() != "by a lice via the API: x y [2J" {
		t.Errorf("%q", o.Signature())
	}
}

func TestAddressesOfGuessersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := guarded(t)
		guess := func(address string) {
			r := from(httptest.NewRequest(http.MethodGet, "http://localhost:9747/api/v1/leader", nil), loopbackAddr)
			r.RemoteAddr = address
			r.Header.Set("Authorization", "Bearer wrong")
			s.ServeHTTP(httptest.NewRecorder(), r)
		}
		for i := range 3 * auth.MostGuessers {
			guess(fmt.Sprintf("[2001:db8:%x::1]:99", i))
			guess("[2001:db8:0:0::2]:99") // an address in the network of the first client
		}
		if n := s.auth.Suspects(); n > auth.MostGuessers+1 {
			t.Errorf("%d addresses are kept, want %d at most", n, auth.MostGuessers)
		}
		time.Sleep(time.Hour)
		asked := time.Now()
		for i := range auth.MostGuessers { // these networks have their own queues again
			guess(fmt.Sprintf("10.1.%d.%d:99", i/256, i%256))
		}
		if took := time.Since(asked); took > 0 {
			t.Errorf("further ones waited %v", took)
		}
	})
}

func TestACookieThatAnotherServerOfTheHostHasSetDoesNotHideTheSession(t *testing.T) {
	s, _ := guarded(t)
	h := door(s)
	cookies, csrf := enterDoor(t, h)
	tossed := append([]*http.Cookie{{Name: "baton-9747", Value: "x"}, {Name: "baton-9747", Value: ""}}, cookies...)
	if rec := browse(h, "POST", "/test/do", url.Values{"csrf": {csrf}}, tossed); rec.Code != 200 {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	browse(h, "POST", "/test/out", nil, tossed)
	if rec := browse(h, "POST", "/test/do", url.Values{"csrf": {csrf}}, cookies); rec.Code != 401 {
		t.Errorf("signed out: %d", rec.Code)
	}
}

func TestWrongTokensAreCountedAndThenSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := guarded(t)
		began := time.Now()
		const more = 10
		for range auth.FreeFailures + more {
			send(s, "/api/v1/pause", "", bearer("wrong")...)
		}
		if took := time.Since(began); took < (more-1)*auth.TurnEvery {
			t.Errorf("%d wrong tokens took %v", auth.FreeFailures+more, took)
		}
	})
}

func TestASessionIsGoodWhereNobodyCanReadItAlone(t *testing.T) {
	s, _ := guarded(t)
	h := door(s)
	cookies, csrf := enterDoor(t, h)
	r := from(httptest.NewRequest(http.MethodGet, "http://10.0.0.7:9747/test/csrf", nil), networkAddr)
	for _, c := range cookies {
		r.AddCookie(c)
	}
	rec := httptest.NewRecorder()
	if h.ServeHTTP(rec, r); csrf == "" || rec.Body.String() == csrf {
		t.Error("a cookie that anybody on the way can have read lets in")
	}
}

func TestWhyASlotWasMissedIsShownToWhoMaySeeIt(t *testing.T) {
	d := &statustest.FakeNode{Entries: []operate.Entry{{ID: "1-0", Missed: &operate.Missed{Reason: "ledger",
		Error: "ask redis: the secret words"}}}}
	for file, shown := range map[string]bool{"": true, tokenFile(t, secretToken): false} {
		h := New(Config{Source: statustest.Fixed(statustest.Sample(time.Now())), Health: standby, Node: d, TokenFile: file})
		r := from(httptest.NewRequest(http.MethodGet, "http://localhost:9747/api/v1/jobs/users/history", nil), loopbackAddr)
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		if rec.Code != 200 || !strings.Contains(rec.Body.String(), "ask redis") || strings.Contains(rec.Body.String(),
			"secret words") != shown {
			t.Errorf("with the token file %q: %d %s", file, rec.Code, rec.Body)
		}
	}
}
