package status

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"baton/internal/status/statustest"
)

// TestNoHeaderMakesANetworkSafeForTheToken checks that a client cannot make a connection safe for the token by a header, because a client
// can send any header.
func TestNoHeaderMakesANetworkSafeForTheToken(t *testing.T) {
	s, g := guarded(t)
	h := door(s)
	for name, value := range map[string]string{
		"X-Forwarded-Proto": "https", "Forwarded": "for=127.0.0.1;proto=https", "X-Forwarded-Scheme": "https", "X-Forwarded-Ssl": "on",
		"X-Forwarded-For": "127.0.0.1", "X-Real-Ip": "127.0.0.1",
	} {
		if rec := sendOn(s, networkAddr, "/api/v1/pause", "", append(bearer(secretToken), name,
			value)...); rec.Code != 403 || g.count() != 0 {
			t.Errorf("%s: an order is answered with %d %s", name, rec.Code, rec.Body)
		}
		form := url.Values{"token": {secretToken}}
		r := from(httptest.NewRequest(http.MethodPost, "http://10.0.0.7:9747/test/in", strings.NewReader(form.Encode())), networkAddr)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://10.0.0.7:9747")
		r.Header.Set(name, value)
		rec := httptest.NewRecorder()
		if h.ServeHTTP(rec, r); rec.Code != 403 || len(rec.Result().Cookies()) > 0 {
			t.Errorf("%s: signing in is answered with %d %s", name, rec.Code, rec.Body)
		}
	}
}

// TestForeignHostNamesAreRefusedOnAnyLoopbackWhateverTheySend checks all loopback addresses. A foreign name can resolve to each of them,
// and a script of the foreign page can send any header.
func TestForeignHostNamesAreRefusedOnAnyLoopbackWhateverTheySend(t *testing.T) {
	s := New(Config{Source: statustest.Fixed(statustest.Sample(time.Now())), Health: standby, Hosts: []string{"baton.example.com"}})
	for _, c := range []struct {
		local  string
		host   string
		header string
		code   int
	}{
		{"127.0.0.1", "baton.example.com", "", 200},
		{"127.0.0.1", "evilbaton.example.com", "", 421},
		{"127.0.0.1", "evil.baton.example.com", "", 421},
		{"127.0.1.1", "evil.example", "", 421},
		{"::1", "evil.example", "", 421},
		{"::1", "localhost", "", 200},
		{"10.0.0.7", "evil.example", "", 200}, // a client in the network may ask anyway
		{"127.0.0.1", "evil.example", "X-Forwarded-Host", 421},
		{"127.0.0.1", "evil.example", "X-Host", 421},
		{"127.0.0.1", "evil.example", "X-Original-Host", 421},
	} {
		r := from(httptest.NewRequest(http.MethodGet, "http://"+c.host+":9747/api/v1/status", nil),
			&net.TCPAddr{IP: net.ParseIP(c.local), Port: 9747})
		if c.header != "" {
			r.Header.Set(c.header, "localhost")
		}
		rec := httptest.NewRecorder()
		if s.ServeHTTP(rec, r); rec.Code != c.code {
			t.Errorf("%+v: %d", c, rec.Code)
		}
	}
}
