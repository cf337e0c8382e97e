package status

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"baton/internal/status/statustest"
)

const readToken = "fedcba9876543210fedcba9876543210"

// proxied returns a server behind a proxy at 192.0.2.1, which is the address of httptest's requests.
func proxied(t *testing.T) (*Server, *given) {
	g := &given{}
	return New(Config{
		Source: statustest.Fixed(statustest.Sample(time.Now())), Health: standby, Do: g.do, TokenFile: tokenFile(t, secretToken),
		ReadTokenFile: tokenFile(t, readToken), Proxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
	}), g
}

func TestTheReadTokenShowsEverythingAndOrdersNothing(t *testing.T) {
	s, g := proxied(t)
	rec := send(s, "/api/v1/jobs/report/run", "", bearer(readToken)...)
	if rec.Code != 403 || !strings.Contains(rec.Body.String(), "http.read_token_file") {
		t.Errorf("an order with the read token: %d %s", rec.Code, rec.Body)
	}
	in := browse(s, "POST", "/sign-in", url.Values{"token": {readToken}}, nil)
	cookies := in.Result().Cookies()
	if in.Code != http.StatusSeeOther || len(cookies) != 1 {
		t.Fatalf("%d %s", in.Code, in.Body)
	}
	page := browse(s, "GET", "/", nil, cookies).Body.String()
	if !strings.Contains(page, "Sign out") || strings.Contains(page, "/confirm?action=") {
		t.Error("a reader's page has buttons for orders, or is that of nobody")
	}
	_, csrf, _ := strings.Cut(page, `name="csrf" value="`)
	csrf, _, _ = strings.Cut(csrf, `"`)
	if rec := browse(s, "POST", "/do", url.Values{"csrf": {csrf}, "action": {"pause"}}, cookies); rec.Code != 403 {
		t.Errorf("a reader's session gives an order: %d", rec.Code)
	}
	if rec := browse(s, "POST", "/sign-out", nil, cookies); rec.Code != http.StatusForbidden {
		t.Errorf("another page signs a reader out: %d", rec.Code)
	}
	if rec := browse(s, "POST", "/sign-out", url.Values{"csrf": {csrf}}, cookies); rec.Code != http.StatusSeeOther {
		t.Errorf("a reader does not get out: %d", rec.Code)
	}
	if strings.Contains(browse(s, "GET", "/", nil, cookies).Body.String(), "Sign out") {
		t.Error("a reader who has signed out is signed in")
	}
	if g.count() != 0 {
		t.Error("an order was carried out")
	}
	if rec := send(s, "/api/v1/jobs/report/run", "", bearer(secretToken)...); rec.Code != 200 {
		t.Errorf("an order with the token: %d %s", rec.Code, rec.Body)
	}
}

func TestSessionsOfReadersEndWithTheirOwnToken(t *testing.T) {
	s, _ := proxied(t)
	in := func(token string) (signedIn func() bool) {
		rec := browse(s, "POST", "/sign-in", url.Values{"token": {token}}, nil)
		if rec.Code != http.StatusSeeOther {
			t.Fatalf("signing in: %d %s", rec.Code, rec.Body)
		}
		cookies := rec.Result().Cookies()
		return func() bool { return strings.Contains(browse(s, "GET", "/", nil, cookies).Body.String(), "Sign out") }
	}
	reader, operator := in(readToken), in(secretToken)
	if !reader() || !operator() {
		t.Fatal("who has just signed in is not")
	}
	if err := os.WriteFile(s.cfg.ReadTokenFile, []byte("another-token-for-readers-of-32-x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if reader() || !operator() {
		t.Errorf("with another token for readers: a reader is signed in: %t, an operator: %t", reader(), operator())
	}
	reader = in("another-token-for-readers-of-32-x")
	if err := os.WriteFile(s.cfg.TokenFile, []byte("another-token-of-32-characters-x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !reader() || operator() {
		t.Errorf("with another token for orders: a reader is signed in: %t, an operator: %t", reader(), operator())
	}
}

func TestWhatATrustedProxySaysDecidesOfTheCookie(t *testing.T) {
	s, _ := proxied(t)
	for _, c := range []struct {
		peer, proto string
		code        int
		secure      bool
	}{
		{"192.0.2.1:5", "https", 303, true}, {"192.0.2.1:5", "", 303, false}, {"192.0.2.1:5", "http", 200, false},
		{"192.0.2.1:5", "https, http", 200, false}, {"127.0.0.1:5", "https", 303, false}, {"127.0.0.1:5", "http", 303, false},
	} {
		body := strings.NewReader("token=" + secretToken)
		r := from(httptest.NewRequest(http.MethodPost, "http://localhost:9747/sign-in", body), loopbackAddr)
		r.RemoteAddr = c.peer
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		if c.proto != "" {
			r.Header.Set("X-Forwarded-Proto", c.proto)
		}
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, r)
		cookies := rec.Result().Cookies()
		if rec.Code != c.code || (len(cookies) == 1) != (c.code == 303) ||
			c.code == 200 && !strings.Contains(rec.Body.String(), "X-Forwarded-Proto") ||
			len(cookies) == 1 && cookies[0].Secure != c.secure {
			t.Errorf("%+v: %d %v", c, rec.Code, cookies)
		}
	}
}

func TestSigningInThroughAProxyThatHidesTheNameSaysWhatToSet(t *testing.T) {
	s, _ := proxied(t)
	r := from(httptest.NewRequest(http.MethodPost, "http://127.0.0.1:9747/sign-in", strings.NewReader("token="+secretToken)), loopbackAddr)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "http://baton.example.com")
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, r)
	for _, want := range []string{"baton.example.com", "127.0.0.1:9747", "proxy_set_header Host", "http.hosts"} {
		if !strings.Contains(rec.Body.String(), want) {
			t.Errorf("the page lacks %q: %d", want, rec.Code)
		}
	}
}
