package auth

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// What a browser says of where an order comes from, with and without a host.
func TestAnOriginWithoutAHostIsAnother(t *testing.T) {
	for origin, other := range map[string]bool{"": false, "http://localhost:9747": false, "http://LOCALHOST:9747": false, "https://localhost": true, "null": true, "file://": true, "http://": true, "%": true} {
		r := httptest.NewRequest(http.MethodPost, "http://localhost:9747/", nil)
		r.Header.Set("Origin", origin)
		if got := crossOrigin(r); got != other {
			t.Errorf("%q: from elsewhere %t", origin, got)
		}
		if r.Host = ""; origin == "http://" && !crossOrigin(r) {
			t.Error("no host is not the same host")
		}
	}
}
